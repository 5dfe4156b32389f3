import { inspect } from 'node:util'
import pg from 'pg'
import { afterAll, expect, it, vi } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import * as accounts from '../../accounts/transactions/accounts.js'
import { type CuttableProxy, cuttableProxy } from '../testing/cuttable-proxy.js'
import { describeOnStore } from '../testing/index.js'
import { raw } from '../testing/inspect.js'
import { add, addAtOnce, addSingle, install, list, PROBE_MODULE } from '../testing/probe.js'
import type { Store } from '../types.js'

describeOnStore(
  'postgres',
  'a store that loses its server',
  (openStore, on) => {
    const proxies: CuttableProxy[] = []
    afterAll(async () => {
      for (const proxy of proxies) await proxy.close()
    })

    /** A store behind a proxy that can be cut, and its place without the proxy. */
    const behindProxy = async (onFailure?: (error: Error) => void) => {
      const place = await on.newPlace()
      const url = new URL(place.location)
      const proxy = await cuttableProxy(Number(url.port))
      proxies.push(proxy)
      url.port = String(proxy.port)
      const store = await openStore({ ...place, location: url.href }, onFailure)
      await store.run(install, {})
      return { store, proxy, place }
    }
    const names = async (store: Store) => (await store.run(list, {})).map(({ name }) => name)
    const codeOf = (work: Promise<unknown>) =>
      work.then(
        () => 'done',
        (error) => error.code ?? String(error),
      )

    it('reports store_unavailable while the server is unreachable, and continues afterwards', async () => {
      const { store, proxy } = await behindProxy()
      await store.run(add, { rows: [{ name: 'before' }] })
      proxy.cut()
      await waitFor(async () => (await codeOf(store.run(list, {}))) === 'store_unavailable', { what: 'the loss' })
      expect(await codeOf(store.run(add, { rows: [{ name: 'meanwhile' }] }))).toBe('store_unavailable')
      proxy.mend()
      await waitFor(async () => (await codeOf(store.run(list, {}))) === 'done', { what: 'the return' })
      await store.run(add, { rows: [{ name: 'after' }] })
      expect(await names(store)).toEqual(['before', 'after'])
    })

    it('settles every pending operation when connections break, and runs none twice', async () => {
      const { store, proxy } = await behindProxy()
      const work = Array.from({ length: 200 }, (_, index) =>
        codeOf(store.run(add, { rows: [{ name: `row ${index}` }] })),
      )
      await work[20]
      proxy.cut()
      const outcomes = await Promise.all(work)
      proxy.mend()
      await waitFor(async () => (await codeOf(store.run(list, {}))) === 'done', { what: 'the return' })
      const found = new Set(await names(store))
      for (const [index, outcome] of outcomes.entries()) {
        if (outcome === 'done') expect(found).toContain(`row ${index}`)
        else if (outcome === 'store_unavailable') expect(found).not.toContain(`row ${index}`)
        else expect(outcome).toBe('store_outcome_unknown')
      }
    })

    it('reports store_outcome_unknown when the connection breaks after COMMIT was sent', async () => {
      const { store, proxy } = await behindProxy()
      await store.run(add, { rows: [{ name: 'before' }] })
      proxy.cutAfter('COMMIT')
      expect(await codeOf(store.run(add, { rows: [{ name: 'perhaps' }] }))).toBe('store_outcome_unknown')
      proxy.mend()
      await waitFor(async () => (await codeOf(store.run(list, {}))) === 'done', { what: 'the return' })
    })

    it('reports store_outcome_unknown when the connection breaks after a single statement was sent', async () => {
      const { store, proxy } = await behindProxy()
      await store.run(addSingle, { rows: [{ name: 'before' }] })
      proxy.cutAfter('perhaps')
      expect(await codeOf(store.run(addSingle, { rows: [{ name: 'perhaps' }] }))).toBe('store_outcome_unknown')
      expect(await codeOf(store.run(addSingle, { rows: [{ name: 'never sent' }] }))).toBe('store_unavailable')
      proxy.mend()
      await waitFor(async () => (await codeOf(store.run(list, {}))) === 'done', { what: 'the return' })
      expect(await names(store)).toEqual(['before', 'perhaps'])
    })

    it('reports store_outcome_unknown when the connection breaks after all statements were sent in one packet', async () => {
      const { store, proxy } = await behindProxy()
      await store.run(addAtOnce, { rows: [{ name: 'before' }, { name: 'both' }] })
      proxy.cutAfter('perhaps')
      expect(await codeOf(store.run(addAtOnce, { rows: [{ name: 'perhaps' }, { name: 'too' }] }))).toBe(
        'store_outcome_unknown',
      )
      proxy.mend()
      await waitFor(async () => (await codeOf(store.run(list, {}))) === 'done', { what: 'the return' })
      expect(await names(store)).toEqual(['before', 'both', 'perhaps', 'too'])
    })

    it('continues after an administrator has terminated its connections', async () => {
      const { store, place } = await behindProxy()
      const ended =
        'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()'
      await raw(place).execute(ended)
      await waitFor(async () => (await codeOf(store.run(add, { rows: [{ name: 'after' }] }))) === 'done', {
        what: 'the return',
      })
      expect(await names(store)).toContain('after')
    })

    it('refuses to run beside another node, at the start and after a lost connection', async () => {
      const onFailure = vi.fn()
      const { store, proxy, place } = await behindProxy(onFailure)
      await expect(openStore(place)).rejects.toMatchObject({ code: 'store_in_use' })
      proxy.cut()
      const second = await waitFor(() => openStore(place), { what: 'the lock to be free' })
      proxy.mend()
      expect(await codeOf(store.run(list, {}))).toBe('store_in_use')
      expect(onFailure).toHaveBeenCalledOnce()
      expect(await codeOf(second.run(list, {}))).toBe('done')
    })

    it('keeps its store while any of its connections lives, whichever is lost on the server alone', async () => {
      const { store, proxy, place } = await behindProxy()
      const open = 'SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()'
      const other = new pg.Client({ connectionString: place.location })
      await other.connect()
      // Calls of one operation may be combined on one connection.
      await Promise.all([store.run(add, { rows: [{ name: 'row' }] }), store.run(list, {})])
      const hasSeveral = async () => ((await other.query(open)).rowCount ?? 0) > 1
      await waitFor(hasSeveral, { what: 'a second connection' }).finally(() => other.end())
      proxy.halfOpen(1)
      await expect(openStore(place)).rejects.toMatchObject({ code: 'store_in_use' })
    })

    it('writes nothing after another node has taken its store, although it did not notice its loss', async () => {
      const onFailure = vi.fn()
      const { store, proxy, place } = await behindProxy(onFailure)
      proxy.halfOpen()
      const second = await waitFor(() => openStore(place), { what: 'the lock to be free' })
      const late = codeOf(store.run(add, { rows: [{ name: 'too late' }] }))
      proxy.cut()
      expect(await late).toMatch(/^store_(unavailable|outcome_unknown)$/)
      proxy.mend()
      expect(await codeOf(store.run(add, { rows: [{ name: 'later still' }] }))).toBe('store_in_use')
      expect(onFailure).toHaveBeenCalledOnce()
      expect(await names(second)).toEqual([])
    })

    it('reports store_unavailable while the server refuses its password, and continues afterwards', async () => {
      const place = await on.newPlace()
      const name = new URL(place.location).pathname.slice(1)
      await raw(place).execute(`CREATE ROLE ${name} LOGIN SUPERUSER PASSWORD 'first'`)
      const url = new URL(place.location)
      url.username = name
      url.password = 'first'
      const store = await openStore({ ...place, location: url.href })
      const end = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${name}'`
      await raw(place).execute(`ALTER ROLE ${name} PASSWORD 'second'; ${end}`)
      await waitFor(async () => (await codeOf(store.run(install, {}))) === 'store_unavailable', { what: 'the refusal' })
      await raw(place).execute(`ALTER ROLE ${name} PASSWORD 'first'`)
      await waitFor(async () => (await codeOf(store.run(install, {}))) === 'done', { what: 'the return' })
      await store.close()
      await raw(place).execute(`REASSIGN OWNED BY ${name} TO current_user; DROP OWNED BY ${name}; DROP ROLE ${name}`)
    })

    it('closes while the server is unreachable', async () => {
      const { store, proxy } = await behindProxy()
      proxy.cut()
      await store.close()
      expect(await codeOf(store.run(list, {}))).toBe('starting')
    })

    it('never shows the password', async () => {
      const place = await on.newPlace()
      const wrong = (change: (url: URL) => void): string => {
        const url = new URL(place.location)
        url.password = 'S3cretWord'
        change(url)
        return url.href
      }
      const locations = [
        wrong(() => undefined),
        wrong((url) => (url.username = 'nobody-here')),
        wrong((url) => (url.port = '1')),
        wrong((url) => (url.hostname = 'nowhere.invalid')),
        wrong(() => undefined).replace('@', '@@:'),
        wrong((url) => url.searchParams.set('sslmode', 'verify-full')),
      ]
      for (const location of locations) {
        const error = await openStore({ ...place, location }).then(
          () => undefined,
          (failure: unknown) => failure,
        )
        expect(error).toMatchObject({ code: 'store_not_opened' })
        expect(inspect(error, { depth: 9, showHidden: true })).not.toContain('S3cretWord')
      }
    })

    it('includes no rows or connections in errors', async () => {
      const store = await openStore()
      const entry = { log_id: 'secret-id', account_id: 'a', actor: 'a', source: 's', action: 'x', entity: 'e' }
      await store.run(accounts.audit, { ...entry, details: '{}', ip: '', at: 1 })
      const error = await store
        .run(accounts.audit, { ...entry, details: '{}', ip: '', at: 1 })
        .catch((failure: unknown) => failure)
      expect(error).toMatchObject({ message: expect.stringContaining('accounts.audit failed: duplicate key') })
      expect(inspect(error, { depth: 9, showHidden: true })).not.toMatch(/secret-id|only-for-tests/)
    })

    it('describes the durability of the server', async () => {
      const { durability } = (await openStore()).describe()
      expect(durability).toContain('fsync=off')
    })
  },
  [PROBE_MODULE],
)
