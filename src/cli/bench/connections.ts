import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { HomeportError } from '../../contract/errors/errors.js'
import { encodeCommand, encodeSimple } from '../../gateway/index.js'
import { failedWith } from '../errors.js'
import { printable } from '../terminal/text.js'

/** The address of a database for the Redis protocol, and how to log in. */
export interface RedisTarget {
  readonly host: string
  readonly port: number
  /** The certificate authority to trust; absent without TLS. */
  readonly tls?: { readonly ca: string | undefined }
  readonly password: string
}

const OK = encodeSimple('OK')

/**
 * A connection that repeats one command, whose reply is known. It compares bytes and parses nothing, so that the load
 * costs little beside the server.
 */
export class RepeatingConnection {
  readonly #socket: Socket
  #pending: { readonly reply: Buffer; got: Buffer; resolve(): void; reject(error: unknown): void } | undefined

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.on('data', (bytes) => this.#received(bytes))
    socket.on('error', (error) => this.#pending?.reject(broken(error)))
    socket.on('close', () => this.#pending?.reject(broken()))
  }

  /** Connects and logs in. */
  static async open({ host, port, tls, password }: RedisTarget): Promise<RepeatingConnection> {
    const socket =
      tls === undefined
        ? connectTcp(port, host)
        : connectTls({ host, port, servername: host, ...(tls.ca !== undefined && { ca: tls.ca }) })
    const connection = new RepeatingConnection(socket)
    await connection.ask(encodeCommand(['AUTH', password]), OK)
    return connection
  }

  /**
   * Sends bytes and waits for exactly this reply.
   * @throws HomeportError `cli_failed` for another reply, or when the connection breaks.
   */
  ask(bytes: Buffer, reply: Buffer): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#pending = { reply, got: Buffer.alloc(0), resolve, reject }
      this.#socket.write(bytes)
    })
  }

  /** Closes the connection. */
  close(): void {
    this.#pending = undefined
    this.#socket.destroy()
  }

  #received(bytes: Buffer): void {
    const pending = this.#pending
    if (pending === undefined) return
    pending.got = pending.got.length === 0 ? bytes : Buffer.concat([pending.got, bytes])
    const { reply, got } = pending
    if (got.length < reply.length && reply.subarray(0, got.length).equals(got)) return
    this.#pending = undefined
    if (got.equals(reply)) pending.resolve()
    else pending.reject(unexpected(got))
  }
}

function unexpected(got: Buffer): HomeportError {
  const problem = `The database replied: ${printable(got.subarray(0, 200).toString('utf8').trim())}`
  return failedWith(problem)
}

function broken(cause?: unknown): HomeportError {
  const problem = 'A connection to the database broke. `homeport status` shows whether the server has a problem.'
  return failedWith(problem, { cause })
}
