import { connect, type Socket } from 'node:net'
import { pause, systemClock } from '../../src/base/index.js'
import type { Random } from '../../src/base/testing/random.js'
import type { AclSecrets } from '../../src/contract/databases/acl-users.js'

/** A node that clients use, and how they log in. */
export interface ReadAt {
  readonly host: string
  readonly restPort: number
}

/** What the clients work with. */
export interface StaleReadsOptions {
  /** The node that keeps the replica. */
  readonly near: ReadAt
  readonly home: ReadAt
  readonly port: number
  /** One client for each user, with its own keys. Read-your-writes holds across all connections and requests of a user. */
  readonly users: readonly AclSecrets[]
  /** Pairs of a write and a read in one round of a client. */
  readonly batch: number
  readonly random: Random
}

/** What was found so far. */
export interface StaleReadsReport {
  readonly pairs: number
  /** Reads that returned another value than the last one written. */
  readonly stale: number
  /** How many batches were refused or broken off; `refusal` is the reason of the last one. */
  readonly refused: number
  readonly refusal: string
  /** The first stale reads. */
  readonly examples: readonly string[]
}

const DIGITS = 12
const MAX_EXAMPLES = 10
const SILENT_MS = 60_000
/** Some nodes may not answer in time, which is no stale read. More refusals than this fail the test. */
const MAX_REFUSED = 1_000
const REFUSED_PAUSE_MS = 200

/** Writes a version to all keys of a client. Returns the sync token, or undefined if there is none. */
type Write = (version: string) => Promise<string | undefined>
/** Reads all keys of a client. Returns the reply, and a function that makes the expected reply for a version. */
type Read = (token: string | undefined) => Promise<Seen>
interface Seen {
  readonly text: string
  readonly whole: (version: string) => string
}

/**
 * Many clients write versions to their own keys and read them back, in pipelines, until they are stopped: over the Redis
 * protocol and REST, in the region, or at the home and then in the region with the sync token of the write. Each value has a
 * fixed length, so a whole reply is compared at once, and the memory of a client does not grow.
 */
export class StaleReads {
  readonly #options: StaleReadsOptions
  readonly #acting: Promise<unknown>
  readonly #examples: string[] = []
  #pairs = 0
  #stale = 0
  #refused = 0
  #refusal = ''
  #isOver = false

  constructor(options: StaleReadsOptions) {
    this.#options = options
    this.#acting = Promise.all(options.users.map((user) => this.#act(user)))
    // `stop` awaits it and reports the error.
    this.#acting.catch(() => undefined)
  }

  get report(): StaleReadsReport {
    const [pairs, stale, refused, refusal] = [this.#pairs, this.#stale, this.#refused, this.#refusal]
    return { pairs, stale, refused, refusal, examples: this.#examples }
  }

  /** Resolves when this many pairs are made; rejects when a client has failed. */
  async until(pairs: number, everyMs: number, each: () => void = () => undefined): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const done = new Promise<void>((resolve) => {
      timer = setInterval(() => {
        each()
        if (this.#pairs >= pairs) resolve()
      }, everyMs)
    })
    await Promise.race([done, this.#acting]).finally(() => clearInterval(timer))
  }

  /** Ends the clients. Rejects when one of them has failed. */
  async stop(): Promise<StaleReadsReport> {
    this.#isOver = true
    await this.#acting
    return this.report
  }

  /** A write without an answer, or with an error, may take effect later, so the client continues with other keys. */
  async #act(user: AclSecrets): Promise<void> {
    for (let life = 0; !this.#isOver; life++) {
      try {
        await this.#live(user, life)
      } catch (error) {
        if (++this.#refused >= MAX_REFUSED) throw error
        this.#refusal = String(error)
        await pause(systemClock, REFUSED_PAUSE_MS)
      }
    }
  }

  async #live(user: AclSecrets, life: number): Promise<void> {
    const { near, home, port, batch, random } = this.#options
    const keys = Array.from({ length: batch }, (_, index) => `stale:${user.name}:${life}:${index}`)
    const [writer, reader] = [new Pipe({ host: near.host, port }, user), new Pipe({ host: near.host, port }, user)]
    const [restNear, restHome] = [near, home].map((at) => new Rest(at, user.restToken, keys)) as [Rest, Rest]
    const writes: readonly Write[] = [(version) => writer.set(keys, version), (version) => restNear.set(version)]
    const reads: readonly Read[] = [() => reader.get(keys), () => restNear.get(undefined)]
    const readWithToken: Read = (token) => restNear.get(token)
    try {
      for (let count = 1; !this.#isOver; count++) {
        const version = String(count).padStart(DIGITS, '0')
        // A reader in the region sees a write at the home if it sends the sync token of the write.
        const isFar = random.chance(0.2)
        const token = await (isFar ? restHome.set(version) : (random.pick(writes) as Write)(version))
        const read = isFar
          ? readWithToken
          : (random.pick(token === undefined ? reads : [...reads, readWithToken]) as Read)
        this.#check(await read(token), version)
      }
    } finally {
      writer.close()
      reader.close()
    }
  }

  #check({ text, whole }: Seen, version: string): void {
    const { batch } = this.#options
    this.#pairs += batch
    if (text === whole(version)) return
    const seen = text.match(/\d{12}/g) ?? []
    this.#stale += batch - seen.filter((one) => one === version).length
    if (this.#examples.length < MAX_EXAMPLES)
      this.#examples.push(`${version} was written, then ${[...new Set(seen)]} read: ${text.slice(0, 100)}`)
  }
}

/** A connection over which one batch of commands after the other is sent. */
class Pipe {
  readonly #socket: Socket
  #received = ''
  #awaited = 0
  #resolve: (text: string) => void = () => undefined
  #reject: (error: Error) => void = () => undefined

  constructor(at: { readonly host: string; readonly port: number }, { name, password }: AclSecrets) {
    this.#socket = connect({ ...at, noDelay: true })
    this.#socket.setEncoding('latin1').on('data', (chunk: string) => this.#take(chunk))
    this.#socket.on('error', (error) => this.#reject(error))
    this.#socket.on('close', () => this.#reject(new Error(`disconnected after ${JSON.stringify(this.#received)}`)))
    this.#socket.setTimeout(SILENT_MS, () => this.#socket.destroy(new Error('no answer')))
    this.#socket.write(`AUTH ${name} ${password}\r\n`)
    this.#awaited = '+OK\r\n'.length
  }

  async set(keys: readonly string[], version: string): Promise<undefined> {
    const answer = await this.#send(
      keys.map((key) => `SET ${key} ${version}\r\n`).join(''),
      '+OK\r\n'.length * keys.length,
    )
    if (answer !== '+OK\r\n'.repeat(keys.length)) throw new Error(`a write was answered ${answer.slice(0, 200)}`)
  }

  async get(keys: readonly string[]): Promise<Seen> {
    const whole = (version: string) => `$${DIGITS}\r\n${version}\r\n`.repeat(keys.length)
    const text = await this.#send(keys.map((key) => `GET ${key}\r\n`).join(''), whole('0'.repeat(DIGITS)).length)
    return { text, whole }
  }

  close(): void {
    this.#socket.removeAllListeners('close').destroy()
  }

  #send(commands: string, answerBytes: number): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#awaited += answerBytes
      this.#resolve = (text) => resolve(text.slice(-answerBytes))
      this.#reject = reject
      this.#socket.write(commands)
    })
  }

  /** An error has another length than the expected reply, so it ends the connection: later replies would be misread. */
  #take(chunk: string): void {
    this.#received += chunk
    if (/(?:^|\n)-/.test(this.#received)) this.#reject(new Error(`an error: ${this.#received.slice(-200)}`))
    if (this.#received.length < this.#awaited) return
    const text = this.#received
    this.#received = ''
    this.#awaited = 0
    this.#resolve(text)
  }
}

/** Requests with a batch of commands, one after the other. */
class Rest {
  readonly #url: string
  readonly #authorization: string
  readonly #keys: readonly string[]

  constructor({ host, restPort }: ReadAt, token: string, keys: readonly string[]) {
    this.#url = `http://${host}:${restPort}/pipeline`
    this.#authorization = `Bearer ${token}`
    this.#keys = keys
  }

  async set(version: string): Promise<string> {
    const { text, token } = await this.#ask(this.#keys.map((key) => ['SET', key, version]))
    if (text !== this.#whole('OK')) throw new Error(`a write was answered ${text.slice(0, 200)}`)
    return token
  }

  async get(token: string | undefined): Promise<Seen> {
    const { text } = await this.#ask(
      this.#keys.map((key) => ['GET', key]),
      token,
    )
    return { text, whole: (version) => this.#whole(version) }
  }

  #whole(result: string): string {
    return `[${this.#keys.map(() => `{"result":"${result}"}`).join(',')}]`
  }

  async #ask(commands: readonly (readonly string[])[], token?: string): Promise<{ text: string; token: string }> {
    const headers = new Headers({ authorization: this.#authorization })
    if (token !== undefined) headers.set('upstash-sync-token', token)
    const signal = AbortSignal.timeout(SILENT_MS)
    const answer = await fetch(this.#url, { method: 'POST', headers, body: JSON.stringify(commands), signal })
    return { text: await answer.text(), token: answer.headers.get('upstash-sync-token') ?? '' }
  }
}
