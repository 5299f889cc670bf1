"""One request: a benchmark compares this with the import of the library alone."""

import asyncio

import dagger
from dagger import dag


async def main():
    async with dagger.connection():
        assert await dag.version()


asyncio.run(main())
