"""Is the schema that is served the one in a file? `schema.py <file>`, inside `ci-tool run`.

graphql-core, on which the Python library stands, asks for the schema in its own words, builds and
validates it, and compares it with the file, statement by statement.
"""

import base64
import json
import os
import sys
import urllib.request

import graphql


def ask(document):
    port, token = os.environ["DAGGER_SESSION_PORT"], os.environ["DAGGER_SESSION_TOKEN"]
    user = base64.b64encode(f"{token}:".encode()).decode()
    headers = {"Authorization": f"Basic {user}", "Content-Type": "application/json"}
    body = json.dumps({"query": document}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/query", body, headers)
    with urllib.request.urlopen(request) as reply:
        answer = json.load(reply)
    assert "errors" not in answer, answer["errors"]
    return answer["data"]


def value(place, argument):
    """The statement about an argument or a field of an input."""
    default = argument.default_value
    shown = "" if default is graphql.Undefined else f" = {default!r}"
    return f"{place}: {argument.type}{shown}"


def fields(name, kind):
    """The statements about the fields of a type."""
    for field_name, field in getattr(kind, "fields", {}).items():
        place = f"{name}.{field_name}"
        if graphql.is_input_object_type(kind):
            yield value(place, field)
            continue
        yield f"{place}: {field.type}"
        for argument_name, argument in field.args.items():
            yield value(f"{place}({argument_name})", argument)


def statements(schema):
    """Everything that a schema promises."""
    for name, kind in schema.type_map.items():
        if name.startswith("__") or graphql.is_specified_scalar_type(kind):
            continue
        yield f"{type(kind).__name__} {name}"
        yield from fields(name, kind)
        yield from (f"{name} is a {interface}" for interface in getattr(kind, "interfaces", ()))
        if graphql.is_enum_type(kind):
            yield from (f"{name}.{member}" for member in kind.values)
    for directive in schema.directives:
        if not graphql.is_specified_directive(directive):
            places = sorted(place.name for place in directive.locations)
            yield f"@{directive.name} on {places}"
            yield from (value(f"@{directive.name}({name})", argument) for name, argument in directive.args.items())


def main():
    with open(sys.argv[1]) as file:
        wanted = graphql.build_schema(file.read())
    question = graphql.get_introspection_query(
        schema_description=True,
        directive_is_repeatable=True,
        input_value_deprecation=True,
        specified_by_url=True,
    )
    served = graphql.build_client_schema(ask(question))
    problems = [f"not valid: {error}" for error in graphql.validate_schema(served)]
    promised, found = set(statements(wanted)), set(statements(served))
    problems += [f"missing: {statement}" for statement in sorted(promised - found)]
    problems += [f"not in the file: {statement}" for statement in sorted(found - promised)]
    for problem in problems:
        print(problem)
    print(f"{len(found)} statements, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
