import { Redis, type RedisOptions } from 'iovalkey'
import type { DatabaseRecord } from '../../src/contract/databases/databases.js'
import { type Pace, think } from '../crash/pace.js'
import type { RunningHomeport } from '../support/index.js'
import type { DatabaseLedger } from './database-ledger.js'
import { type Loads, Violation } from './loads.js'

/** A record with its credentials. */
export type NewDatabase = DatabaseRecord & Required<Pick<DatabaseRecord, 'password' | 'rest_token'>>

const KEYS = 16
const LARGE = 'x'.repeat(100_000)
/** Every command must be answered within this time, whatever is killed meanwhile. */
const COMMAND_TIMEOUT_MS = 90_000
const LOOK_EVERY = 25
const LIST_LENGTH = 400

/** Connects without automatic reconnection. The caller disconnects. */
export function connect(database: NewDatabase, options: RedisOptions = {}): Redis {
  const client = new Redis({
    host: '127.0.0.1',
    port: database.port,
    password: database.password,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    enableReadyCheck: false,
    commandTimeout: COMMAND_TIMEOUT_MS,
    ...options,
  })
  client.on('error', () => undefined)
  return client
}

/** Runs work with a new connection. */
export async function connected<Result>(
  database: NewDatabase,
  work: (client: Redis) => Promise<Result>,
  login?: { username?: string; password?: string },
): Promise<Result> {
  const client = connect(database, login)
  try {
    return await work(client)
  } catch (error) {
    if (error instanceof Error && error.message.includes('Command timed out'))
      throw new Violation(`a command was not answered within ${COMMAND_TIMEOUT_MS / 1000} s`)
    throw error
  } finally {
    client.disconnect()
  }
}

/** One client: writes its own numbers, and then reads them back. */
class Writer {
  readonly #database: NewDatabase
  readonly #ledger: DatabaseLedger
  readonly #prefix: string
  readonly #pace: Pace
  #number = 0

  constructor(database: NewDatabase, ledger: DatabaseLedger, name: string, pace: Pace) {
    this.#database = database
    this.#ledger = ledger
    this.#prefix = `${database.database_id}/${name}`
    this.#pace = pace
  }

  /** Writes until the connection fails. */
  async write(): Promise<void> {
    await connected(this.#database, async (client) => {
      await this.look(client)
      for (;;) {
        await this.#writeOnce(client, ++this.#number)
        await think(this.#pace)
        if (this.#number % LOOK_EVERY === 0) await this.look(client)
      }
    })
  }

  async #writeOnce(client: Redis, number: number): Promise<void> {
    switch (number % 5) {
      case 0:
        return await this.#together(number, ['a', 'b'], (keys) =>
          client
            .multi()
            .set(keys[0] ?? '', number)
            .set(keys[1] ?? '', number)
            .exec(),
        )
      case 1:
        return await this.#together(number, ['c', 'd'], (keys) =>
          client.eval("for _, k in ipairs(KEYS) do redis.call('SET', k, ARGV[1]) end return 1", 2, ...keys, number),
        )
      case 2:
        return await this.#append(client, number)
      case 3: {
        const keys = Array.from({ length: 8 }, (_, index) => `p${index}`)
        return await this.#together(number, keys, (names) => {
          const pipeline = client.pipeline()
          for (const name of names) pipeline.set(name, number)
          return pipeline.exec()
        })
      }
      default:
        return await this.#together(number, [`k${number % KEYS}`], async ([key]) => {
          if (number % 50 === 4) await client.set(`${this.#prefix}/large`, LARGE)
          return await client.set(key ?? '', number)
        })
    }
  }

  /** Writes one number to keys, in the client's own way. */
  async #together(
    number: number,
    names: readonly string[],
    write: (keys: string[]) => Promise<unknown>,
  ): Promise<void> {
    const keys = names.map((name) => `${this.#prefix}/${name}`)
    for (const key of keys) this.#ledger.sending(key, number)
    refuseErrors(await write(keys))
    for (const key of keys) this.#ledger.answered(key, number)
  }

  async #append(client: Redis, number: number): Promise<void> {
    const list = `${this.#prefix}/list${Math.floor(number / LIST_LENGTH)}`
    this.#ledger.appending(list, number)
    await client.rpush(list, number)
    this.#ledger.appended(list, number)
  }

  /** Compares everything that this client has written with the database. */
  async look(client: Redis): Promise<void> {
    const mine = (name: string): boolean => name.startsWith(this.#prefix)
    const keys = [...this.#ledger.keys].filter(mine)
    const lists = [...this.#ledger.lists].filter(mine).slice(-2)
    if (keys.length > 0) {
      const values = await client.mget(keys)
      for (const [index, key] of keys.entries()) this.#ledger.saw(key, values[index] ?? null)
    }
    for (const list of lists) this.#ledger.sawList(list, await client.lrange(list, 0, -1))
    await this.#lookAtPair(client, 'a', 'b')
    await this.#lookAtPair(client, 'c', 'd')
  }

  /** Checks that a transaction is there completely or not at all. */
  async #lookAtPair(client: Redis, ...names: [string, string]): Promise<void> {
    const [one, other] = await client.mget(names.map((name) => `${this.#prefix}/${name}`))
    if (one !== other) this.#ledger.violations.push(`${this.#prefix}: ${names} of one transaction are ${one}, ${other}`)
  }
}

/** Throws the errors in the results of a pipeline or transaction. */
function refuseErrors(answer: unknown): void {
  if (answer === null) throw new Error('the transaction was discarded')
  if (!Array.isArray(answer)) return
  for (const item of answer) if (Array.isArray(item) && item[0] instanceof Error) throw item[0]
}

/** The clients of a database, one of them over REST. */
export interface DatabaseClients {
  /** Compares everything with the ledger. */
  checkAll(): Promise<void>
}

/** Starts clients that write to a database until the load is over. */
export function startDatabaseLoad(
  loads: Loads,
  database: NewDatabase,
  ledger: DatabaseLedger,
  clients: number,
): DatabaseClients {
  const writers = Array.from({ length: clients }, (_, index) => new Writer(database, ledger, `w${index}`, loads.pace))
  for (const writer of writers) loads.repeat('write', () => writer.write())
  const rest = restWriter(database, ledger)
  loads.repeat('write over REST', rest)
  return {
    checkAll: () =>
      connected(database, async (client) => {
        for (const writer of writers) await writer.look(client)
        const key = restKey(database)
        ledger.saw(key, await client.get(key))
      }),
  }
}

const restKey = ({ database_id }: NewDatabase): string => `${database_id}/rest`

function restWriter(database: NewDatabase, ledger: DatabaseLedger): (homeport: RunningHomeport) => Promise<void> {
  let number = 0
  const key = restKey(database)
  return async ({ restUrl }) => {
    ledger.sending(key, ++number)
    const headers = { authorization: `Bearer ${database.rest_token}` }
    const response = await fetch(restUrl, { method: 'POST', headers, body: JSON.stringify(['SET', key, number]) })
    const text = await response.text()
    if (response.status === 401) throw new Violation(`a right REST token was refused: ${text}`)
    if (!response.ok) throw new Error(`REST answered ${response.status} ${text}`)
    ledger.answered(key, number)
  }
}
