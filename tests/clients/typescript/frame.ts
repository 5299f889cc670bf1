// What the cases for the published TypeScript library are made of.

import { ok } from "node:assert/strict"
import { mkdtemp, rm } from "node:fs/promises"
import { createServer as createWebServer } from "node:http"
import { createServer } from "node:net"
import type { AddressInfo, ListenOptions, Server } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { dag } from "@dagger.io/dagger"

/** Cases by name. */
export type Cases = Record<string, () => Promise<void>>

const IMAGE = "deb://bookworm"

export const debian = () => dag.container().from(IMAGE)
export const shell = (script: string) => debian().withExec(["sh", "-c", script])
export const plain = (names: string[]) => names.map((name) => name.replace(/\/$/, ""))

/** The error of this class that a promise must end with. */
export async function rejects<E extends Error>(kind: abstract new (...args: never[]) => E, promise: Promise<unknown>): Promise<E> {
  let value: unknown
  try {
    value = await promise
  } catch (error) {
    ok(error instanceof kind, `not a ${kind.name} but ${String(error)}`)
    return error
  }
  throw new Error(`no ${kind.name} but ${String(value)}`)
}

/** Gives a function a folder of the host, which is gone afterwards. */
export async function withFolder(use: (folder: string) => Promise<void>) {
  const folder = await mkdtemp(join(tmpdir(), "cases-"))
  try {
    await use(folder)
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** Lets a server listen while a function uses its port. */
async function listening(server: Server, options: ListenOptions, use: (port: number) => Promise<void>) {
  await new Promise<void>((ready) => server.listen(options, ready))
  try {
    await use((server.address() as AddressInfo).port)
  } finally {
    server.close()
  }
}

/** A server of this machine that says one text to everybody. */
export async function answering(text: string, options: ListenOptions, use: (port: number) => Promise<void>) {
  await listening(createServer((connection) => connection.end(text)), options, use)
}

/** A web server of this machine that has one page, at `/page.txt`. */
export async function webServer(use: (address: string) => Promise<void>) {
  const server = createWebServer((request, reply) => {
    if (request.url !== "/page.txt") reply.statusCode = 404
    reply.end("from the web")
  })
  await listening(server, { port: 0, host: "127.0.0.1" }, (port) => use(`http://127.0.0.1:${port}`))
}
