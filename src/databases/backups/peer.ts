/**
 * A connection to an untrusted Redis server, with bounds on time and memory: the source of an import, which may be
 * malicious, and also the engine that takes the copy.
 */
import { connect as connectPlain, type NetConnectOpts, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Clock, Timer } from '../../base/index.js'
import { type Reply, ReplyError, type ReplyLimits, ReplyStream, type TakePiece } from './reply-stream.js'

const MIB = 2 ** 20

/** Bounds on copying a foreign server, whatever it sends. Times in milliseconds. */
export interface CopyLimits {
  /** Limits of one reply. Engines take no value of more than 512 MiB. */
  readonly reply: ReplyLimits
  readonly connectMs: number
  /** How long a reply may take, and each next chunk of a value. */
  readonly replyMs: number
  /** How long a whole value may take. */
  readonly valueMs: number
  /** How long the copy may take. */
  readonly totalMs: number
  /** Consecutive SCAN pages without a key. */
  readonly emptyPages: number
  /** SCAN may list at most `keyFactor` × DBSIZE + `spareKeys` keys; it may list a key twice. */
  readonly keyFactor: number
  readonly spareKeys: number
  /** At most `byteFactor` × the database's size limit + `spareBytes` bytes are read. */
  readonly byteFactor: number
  readonly spareBytes: number
  /** Addresses tried for one host name. */
  readonly addresses: number
}

/** The bounds of every import. docs/backups.md lists them. */
export const COPY_LIMITS: CopyLimits = {
  reply: { depth: 4, elements: 50_000, replyBytes: 16 * MIB, valueBytes: 512 * MIB },
  connectMs: 10_000,
  replyMs: 60_000,
  valueMs: 15 * 60_000,
  totalMs: 24 * 3_600_000,
  emptyPages: 100_000,
  keyFactor: 8,
  spareKeys: 100_000,
  byteFactor: 4,
  spareBytes: 64 * MIB,
  addresses: 8,
}

/** Where a peer is and how to log in; `tls` asks for TLS. */
export interface PeerAddress {
  readonly where: NetConnectOpts
  readonly tls?: { readonly servername?: string }
  readonly username?: string
  readonly password?: string
  readonly db?: number
}

/** What bounds a connection to a peer in time. */
export interface PeerOptions {
  readonly clock: Clock
  /** Destroys the connection when it is aborted. */
  readonly signal: AbortSignal
}

/** The errors of an engine without a password when it gets one. */
const NEEDS_NO_PASSWORD = /without any password configured|no password is set/

/** Shorter passwords are not masked in errors: their text occurs in ordinary words. */
const MIN_MASKED_LENGTH = 4

/** See the top of this file. */
export class Peer {
  readonly #socket: Socket
  readonly #clock: Clock
  readonly #replies: ReplyStream
  readonly #password: string | undefined
  readonly #stopListening: () => void

  private constructor(socket: Socket, password: string | undefined, { clock, signal }: PeerOptions) {
    this.#socket = socket
    this.#password = password
    this.#clock = clock
    this.#replies = new ReplyStream(socket, COPY_LIMITS.reply)
    socket.setNoDelay(true)
    // Readers and writers get the error themselves; without a listener the process would crash.
    socket.on('error', () => undefined)
    const onAbort = (): void => void socket.destroy(new Error('the server is stopping'))
    signal.addEventListener('abort', onAbort, { once: true })
    this.#stopListening = () => signal.removeEventListener('abort', onAbort)
    if (signal.aborted) onAbort()
  }

  /** Connects and logs in; rejects with the cause. The caller closes the connection. */
  static async connect(address: PeerAddress, options: PeerOptions): Promise<Peer> {
    const { where, tls } = address
    const socket = tls ? connectTls({ ...where, ...tls }) : connectPlain(where)
    const peer = new Peer(socket, address.password, options)
    try {
      await peer.#opened(tls ? 'secureConnect' : 'connect')
      await peer.#logIn(address)
      return peer
    } catch (error) {
      peer.close()
      throw error
    }
  }

  /** Bytes of replies read so far. */
  get readBytes(): number {
    return this.#replies.readBytes
  }

  /** Sends a command and resolves to its reply; rejects with an error reply. */
  async ask(...words: readonly (string | Buffer)[]): Promise<Reply> {
    await this.send(words)
    return this.reply()
  }

  /** Sends commands without waiting for their replies. */
  send(...commands: readonly (readonly (string | Buffer)[])[]): Promise<void> {
    return this.write(Buffer.concat(commands.flatMap((words) => encoded(words))))
  }

  /** Writes bytes of commands; resolves when the socket takes more. */
  async write(bytes: Buffer): Promise<void> {
    if (this.#socket.destroyed) throw this.#socket.errored ?? new Error('the connection was closed')
    if (this.#socket.write(bytes)) return
    await this.#within(COPY_LIMITS.replyMs, drained(this.#socket))
  }

  /** The next reply; rejects when it is an error. */
  async reply(): Promise<Reply> {
    const reply = await this.#within(COPY_LIMITS.replyMs, this.#replies.reply())
    if (reply instanceof ReplyError) throw this.#withoutPassword(reply)
    return reply
  }

  /** Streams the next reply, a value, to `take`; false for a null reply. See `ReplyStream`. */
  async value(onLength: (bytes: number) => void, take: TakePiece): Promise<boolean> {
    let stalled = this.#deadline(COPY_LIMITS.replyMs)
    const takeInTime: TakePiece = async (chunk) => {
      stalled.cancel()
      await take(chunk)
      stalled = this.#deadline(COPY_LIMITS.replyMs)
    }
    try {
      const found = await this.#within(COPY_LIMITS.valueMs, this.#replies.value(onLength, takeInTime))
      if (found instanceof ReplyError) throw this.#withoutPassword(found)
      return found
    } finally {
      stalled.cancel()
    }
  }

  /** Closes the connection; pending reads and writes reject with the reason. */
  close(reason?: Error): void {
    this.#stopListening()
    this.#socket.destroy(reason)
  }

  async #logIn({ username, password, db }: PeerAddress): Promise<void> {
    if (password !== undefined) {
      const login = ['AUTH', ...(username === undefined ? [] : [username]), password]
      await this.ask(...login).catch((error: unknown) => {
        if (!(error instanceof ReplyError && NEEDS_NO_PASSWORD.test(error.message))) throw error
      })
    }
    if (db) await this.ask('SELECT', `${db}`)
    await this.ask('PING')
  }

  #opened(event: 'connect' | 'secureConnect'): Promise<void> {
    const opened = new Promise<void>((resolve, reject) => {
      this.#socket.once(event, () => resolve())
      this.#socket.once('error', reject)
      this.#socket.once('close', () => reject(new Error('the connection was closed')))
    })
    return this.#within(COPY_LIMITS.connectMs, opened)
  }

  /** Masks the password: a server may echo it in an error, and errors are shown and logged. */
  #withoutPassword(error: ReplyError): ReplyError {
    if (!this.#password || this.#password.length < MIN_MASKED_LENGTH) return error
    return new ReplyError(error.message.replaceAll(this.#password, '(password)'))
  }

  /** Closes the connection, and so fails whatever waits on it, when the work takes longer. */
  async #within<Result>(ms: number, work: Promise<Result>): Promise<Result> {
    const timer = this.#deadline(ms)
    try {
      return await work
    } finally {
      timer.cancel()
    }
  }

  #deadline(ms: number): Timer {
    return this.#clock.after(ms, () => {
      this.#socket.destroy(new Error(`it gave no complete answer within ${ms / 1000} s`))
    })
  }
}

function drained(socket: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (act: () => void) => (): void => {
      socket.off('drain', onDrain)
      socket.off('close', onClose)
      act()
    }
    const onDrain = settle(resolve)
    const onClose = settle(() => reject(socket.errored ?? new Error('the connection was closed')))
    socket.on('drain', onDrain)
    socket.on('close', onClose)
  })
}

/** A command as bytes. */
function encoded(words: readonly (string | Buffer)[]): Buffer[] {
  return [Buffer.from(`*${words.length}\r\n`), ...words.flatMap((word) => argument(Buffer.from(word)))]
}

/** An argument of a command as bytes. */
export function argument(bytes: Buffer): Buffer[] {
  return [Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n')]
}
