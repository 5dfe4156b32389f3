/**
 * `homeport/testing`, as it runs in the process of the tests. It starts one host process for all test servers of this
 * process, and sends it calls. It loads no code of the server and sets no timer, because tests replace modules and timers.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import type { CallName, Calls, DeliveryRecord, Reply } from './protocol.js'
import type { Delivery, Homeport, startHomeport as StartHomeport, StartOptions } from './testing.cjs'

interface PendingCall {
  readonly resolve: (result: never) => void
  readonly reject: (error: Error) => void
  /** Created by the call, so that its stack leads to the test. */
  readonly error: Error
}

/** Variables that are about the process of the tests, or about a server that the developer runs. */
const NOT_INHERITED = /^(?:NODE_|VITEST|JEST|HOMEPORT_(?!ENGINE_)|QSTASH_|UPSTASH_)/

function inherited(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !NOT_INHERITED.test(name)))
}

/** The process that hosts the test servers. It ends with this process, or once it has hosted no server for a while. */
class Host {
  readonly #child: ChildProcess
  readonly #pending = new Map<number, PendingCall>()
  #calls = 0
  isOver = false

  constructor() {
    this.#child = spawn(process.execPath, [join(__dirname, 'testing-host.js')], {
      env: inherited(),
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    this.#child.on('message', (reply) => this.#settle(reply as Reply))
    this.#child.once('error', (error) => this.#end(error.message))
    this.#child.once('disconnect', () => this.#end('it was disconnected'))
    this.#child.once('exit', (code, signal) => this.#end(`it ended with ${signal ?? `code ${code}`}`))
    this.#child.unref()
    this.#holdProcess()
  }

  call<Name extends CallName>(call: Name, args: Calls[Name]['args']): Promise<Calls[Name]['result']> {
    const error = new Error()
    return new Promise((resolve, reject) => {
      if (this.isOver) throw new Error('The process of the test servers has ended.')
      const id = ++this.#calls
      this.#pending.set(id, { resolve, reject, error })
      this.#holdProcess()
      this.#child.send({ id, call, args }, (failure) => failure && this.#end(failure.message))
    })
  }

  #settle(reply: Reply): void {
    const call = this.#pending.get(reply.id)
    this.#pending.delete(reply.id)
    this.#holdProcess()
    if (!call) return
    if ('result' in reply) call.resolve(reply.result as never)
    else call.reject(Object.assign(call.error, reply.error, { stack: stackOf(call.error, reply.error.message) }))
  }

  #end(reason: string): void {
    this.isOver = true
    for (const { reject, error } of this.#pending.values()) {
      const message = `The process of the test servers is gone: ${reason}.`
      reject(Object.assign(error, { message, code: 'host_gone', stack: stackOf(error, message) }))
    }
    this.#pending.clear()
  }

  /** A server that a test forgot must not keep this process alive. A pending call must. */
  #holdProcess(): void {
    if (this.#pending.size > 0) this.#child.channel?.ref()
    else this.#child.channel?.unref()
  }
}

const stackOf = ({ stack = '' }: Error, message: string): string => `Error: ${message}\n${stack.replace(/^.*\n/, '')}`

let current: Host | undefined

function host(): Host {
  if (!current || current.isOver) current = new Host()
  return current
}

/** Starts a server. An idle host may end at the moment of the call; then a new host gets the call. */
async function start(options: StartOptions) {
  const first = host()
  try {
    return { host: first, ...(await first.call('start', options)) }
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'host_gone') || first === host()) throw error
    const second = host()
    return { host: second, ...(await second.call('start', options)) }
  }
}

function toDelivery({ at, retryAt, ...rest }: DeliveryRecord): Delivery {
  return { ...rest, at: new Date(at), ...(retryAt !== undefined && { retryAt: new Date(retryAt) }) }
}

/** See `testing.d.cts`, which is what applications read. */
export const startHomeport: typeof StartHomeport = async (options = {}) => {
  const { host, server, env } = await start(options)
  let stopping: Promise<void> | undefined
  const homeport: Homeport = {
    env,
    createDatabase: (name) => host.call('createDatabase', { server, ...(name !== undefined && { name }) }),
    advanceTime: async (ms, how) => void (await host.call('advanceTime', { server, ms, ...how })),
    now: async () => new Date(await host.call('now', { server })),
    deliveries: async (which) => (await host.call('deliveries', { server, ...which })).map(toDelivery),
    reset: async () => void (await host.call('reset', { server })),
    stop: () => {
      stopping ??= host.isOver ? Promise.resolve() : host.call('stop', { server }).then(() => undefined)
      return stopping
    },
  }
  return homeport
}
