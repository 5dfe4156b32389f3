/** The process that hosts the test servers of one process of tests, and ends with it. */
import { rmSync } from 'node:fs'
import { codeOf, systemClock, type Timer } from '../base/index.js'
import { keepFilesPrivate } from '../config/index.js'
import type { CallName, Calls, Reply, Request } from './protocol.js'
import { TestServer } from './test-server.js'

/** A host without servers ends after this time; the next start makes a new one. */
const IDLE_MS = 10_000
/** Time limit for stopping the servers after the tests have ended. */
const END_MS = 5_000

const servers = new Map<number, TestServer>()
let started = 0
let pending = 0
let idle: Timer | undefined
let isEnding = false

type Handlers = { readonly [Name in CallName]: (args: Calls[Name]['args']) => Promise<Calls[Name]['result']> }

const handlers: Handlers = {
  async start(options) {
    const server = await TestServer.start(options)
    servers.set(++started, server)
    return { server: started, env: server.env }
  },
  createDatabase: (args) => serverOf(args).createDatabase(args.name),
  async advanceTime(args) {
    await serverOf(args).advanceTime(args.ms, args)
    return null
  },
  now: async (args) => serverOf(args).now(),
  deliveries: (args) => serverOf(args).deliveries(args),
  async reset(args) {
    await serverOf(args).reset()
    return null
  },
  async stop(args) {
    const server = servers.get(args.server)
    servers.delete(args.server)
    await server?.stop()
    return null
  },
}

function serverOf({ server }: { readonly server: number }): TestServer {
  const found = servers.get(server)
  if (!found) throw new Error('This test server has been stopped.')
  return found
}

/** Never rejects. */
async function answer({ id, call, args }: Request): Promise<void> {
  pending++
  idle?.cancel()
  const run = handlers[call] as (args: unknown) => Promise<unknown>
  const reply: Reply = await run(args).then(
    (result) => ({ id, result }),
    (error: unknown) => ({ id, error: describe(error) }),
  )
  pending--
  if (isEnding) return
  process.send?.(reply)
  if (pending === 0 && servers.size === 0) idle = systemClock.after(IDLE_MS, () => process.exit(0))
}

function describe(error: unknown): { message: string; code?: string } {
  const message = error instanceof Error ? error.message : String(error)
  const code = codeOf(error)
  return code === '' ? { message } : { message, code }
}

function end(): void {
  if (isEnding) return
  isEnding = true
  systemClock.after(END_MS, () => process.exit(1))
  void Promise.allSettled([...servers.values()].map((server) => server.stop())).then(() => process.exit(0))
}

keepFilesPrivate()
// The process of the tests gets Ctrl-C, too, and decides what to do. When it ends, the channel closes.
process.on('SIGINT', () => undefined)
process.on('SIGTERM', end)
process.on('disconnect', end)
process.on('exit', () => {
  for (const { dataDir } of servers.values()) rmSync(dataDir, { recursive: true, force: true })
})
process.on('message', (request) => void answer(request as Request))
