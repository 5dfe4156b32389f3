/**
 * Runs a test suite on both databases: on a SQLite file and on a real PostgreSQL server.
 *
 *   describeOnEveryStore('accounts', (openStore) => {
 *     it('keeps what was written', async () => {
 *       const store = await openStore()
 *       ...
 *     })
 *   })
 *
 * Every `openStore()` opens a new, empty store. It costs two threads or a database, so a suite that can share one opens it
 * in `beforeAll` and gives each test its own account. `openStore(place)` opens the same store again: `place = await
 * newPlace()`, open, close, open. Stores that are open after the suite are closed, and the places are deleted. A new
 * store is a copy of one with the whole schema; only that of `newPlace()` is empty. The server starts with
 * the first suite that needs it and ends with the run, even if the run is killed.
 */
import { basename } from 'node:path'
import { afterAll, describe, inject } from 'vitest'
import { atCleanup } from '../../../test/support/cleanup.js'
import { isSampled } from '../../../test/support/sample.js'
import { tempDir } from '../../../test/support/temp-dir.js'
import { openStore, type StoreSettings } from '../open.js'
import type { Store, StoreDescription } from '../types.js'
import { migratedDataDir } from './migrated-file.js'
import './postgres-broker.js'

/** Which database a suite runs on. */
export type StoreKind = StoreDescription['kind']

/** Location of a store. */
export type StorePlace = Pick<StoreSettings, 'location' | 'dataDir'>

/** Opens a store at a place, or a new, empty one. */
export type OpenStore = (place?: StorePlace, onFailure?: (error: Error) => void) => Promise<Store>

/** The database that a suite runs on. */
export interface StoreUnderTest {
  readonly kind: StoreKind
  /** Returns a place without any data. */
  newPlace(): Promise<StorePlace>
}

/** All kinds of stores. */
export const STORE_KINDS: readonly StoreKind[] = ['sqlite', 'postgres']

/** The tests of a suite. */
export type Suite = (openStore: OpenStore, on: StoreUnderTest) => void

/**
 * Declares a suite that runs on every kind of store.
 * @param modules URLs of modules with operations of the suite.
 */
export function describeOnEveryStore(name: string, suite: Suite, modules: readonly string[] = []): void {
  for (const kind of STORE_KINDS) describeOnStore(kind, name, suite, modules)
}

/**
 * Declares a suite that runs on one kind of store, which changes with the number of the sample (`test/support/sample.ts`):
 * for suites of an API, whose own code is the same for both. Suites of the transactions themselves run on both stores.
 * @param modules URLs of modules with operations of the suite.
 */
export function describeOnSampledStore(name: string, suite: Suite, modules: readonly string[] = []): void {
  // By its name, so that each run has some suites on each kind.
  const offset = [...name].reduce((sum, letter) => sum + letter.charCodeAt(0), 0)
  for (const [place, kind] of STORE_KINDS.entries())
    if (isSampled(place + offset, STORE_KINDS.length)) describeOnStore(kind, name, suite, modules)
}

/** Declares a suite that runs on one kind of store. */
export function describeOnStore(kind: StoreKind, name: string, suite: Suite, modules: readonly string[] = []): void {
  describe(`${name} on ${kind}`, () => {
    const open: Store[] = []
    const databases: string[] = []
    const makePlace = async (schema: 'empty' | 'migrated'): Promise<StorePlace> => {
      if (kind === 'sqlite') return { location: 'sqlite', dataDir: schema === 'empty' ? tempDir() : migratedDataDir() }
      const location = await askBroker('POST', `/${schema}`)
      databases.push(location)
      return { location, dataDir: '' }
    }
    const newPlace = () => makePlace('empty')
    const openHere: OpenStore = async (place, onFailure = () => undefined) => {
      const store = await openStore({ ...(place ?? (await makePlace('migrated'))), modules, onFailure })
      open.push(store)
      return store
    }
    afterAll(async () => {
      await Promise.all(open.map((store) => store.close()))
      for (const url of databases) await askBroker('DELETE', `/${basename(url)}`)
    })
    suite(openHere, { kind, newPlace })
  })
}

/**
 * Makes a PostgreSQL database with the schema of the store and nothing in it, for the nodes of a cluster. It is dropped at cleanup.
 * @returns its URL.
 */
export async function newPostgresDatabase(): Promise<string> {
  const url = await askBroker('POST', '/migrated')
  atCleanup(async () => void (await askBroker('DELETE', `/${basename(url)}`)))
  return url
}

async function askBroker(method: 'POST' | 'DELETE', path: string): Promise<string> {
  const broker = inject('postgresBroker')
  if (!broker) throw new Error('no PostgreSQL: src/store/testing/postgres-broker.ts must be a globalSetup of the run')
  const answer = await fetch(broker + path, { method })
  if (!answer.ok) throw new Error(`PostgreSQL for tests: ${await answer.text()}`)
  return answer.text()
}
