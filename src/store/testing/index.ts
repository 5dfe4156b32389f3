/**
 * Tests on every database that the store supports: a suite is written once and runs on a SQLite file and on a real
 * PostgreSQL server.
 *
 *   describeOnEveryStore('accounts', (openStore) => {
 *     it('keeps what was written', async () => {
 *       const store = await openStore()
 *       ...
 *     })
 *   })
 *
 * Every `openStore()` opens a new, empty store; it costs two threads or a database, so a suite that can share one
 * opens it in `beforeAll` and gives each test an account of its own. `openStore(place)` opens the same store again:
 * `place = await newPlace()`, open, close, open. Whatever is still open after the suite is closed, and the places are
 * deleted. A new PostgreSQL database is a copy of one that has the whole schema already; only `newPlace()` holds nothing
 * yet. The server starts when the first suite of a run asks for it and ends with the run, even when the run is killed.
 */
import { basename } from 'node:path'
import { afterAll, describe, inject } from 'vitest'
import { tempDir } from '../../../test/support/temp-dir.js'
import { openStore, type StoreSettings } from '../open.js'
import type { Store, StoreDescription } from '../types.js'
import './postgres-broker.js'

/** Which database a suite runs on. */
export type StoreKind = StoreDescription['kind']

/** Where a store lies. */
export type StorePlace = Pick<StoreSettings, 'location' | 'dataDir'>

/** Opens a store at a place, or a new and empty one. */
export type OpenStore = (place?: StorePlace, onFailure?: (error: Error) => void) => Promise<Store>

/** What a suite may want to know of the database it runs on. */
export interface StoreUnderTest {
  readonly kind: StoreKind
  /** A place that holds nothing yet. */
  newPlace(): Promise<StorePlace>
}

/** Every kind of store. */
export const STORE_KINDS: readonly StoreKind[] = ['sqlite', 'postgres']

/** The tests of a suite. */
export type Suite = (openStore: OpenStore, on: StoreUnderTest) => void

/**
 * Declares a suite on every kind of store.
 * @param modules URLs of modules with operations that only the suite needs.
 */
export function describeOnEveryStore(name: string, suite: Suite, modules: readonly string[] = []): void {
  for (const kind of STORE_KINDS) describeOnStore(kind, name, suite, modules)
}

/** Declares a suite on one kind of store, for what only that kind promises. */
export function describeOnStore(kind: StoreKind, name: string, suite: Suite, modules: readonly string[] = []): void {
  describe(`${name} on ${kind}`, () => {
    const open: Store[] = []
    const databases: string[] = []
    const makePlace = async (schema: 'empty' | 'migrated'): Promise<StorePlace> => {
      if (kind === 'sqlite') return { location: 'sqlite', dataDir: tempDir() }
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

async function askBroker(method: 'POST' | 'DELETE', path: string): Promise<string> {
  const broker = inject('postgresBroker')
  if (!broker) throw new Error('no PostgreSQL: src/store/testing/postgres-broker.ts must be a globalSetup of the run')
  const answer = await fetch(broker + path, { method })
  if (!answer.ok) throw new Error(`PostgreSQL for tests: ${await answer.text()}`)
  return answer.text()
}
