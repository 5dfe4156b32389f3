import { renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { tempDir } from '../../../test/support/temp-dir.js'
import { waitFor } from '../../../test/support/wait-for.js'
import { openSqlite } from '../../base/index.js'
import { add, addInBackground, install, list, PROBE_MODULE } from '../testing/probe.js'
import { Checkpointer, type CheckpointingWriter } from './checkpointer.js'
import { ThreadClient } from './thread-client.js'
import { logLength } from './write-ahead-log.js'

const PAGE_BYTES = 4_096

/** A database that is never checkpointed automatically, and a function that writes a number of pages. */
function database() {
  const path = join(tempDir(), 'a.sqlite')
  const db = openSqlite(path)
  db.exec('PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0')
  db.exec('CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)')
  const insert = db.prepare('INSERT INTO notes (text) VALUES (?)')
  const write = (pages: number) => void insert.run('x'.repeat(pages * PAGE_BYTES))
  onTestFinished(() => void db.close())
  return { path, db, write }
}

/** A writer without background batches. */
const idleWriter = (checkpoint: () => void = () => {}): CheckpointingWriter => ({
  pauseBatches: (onPaused) => onPaused(),
  checkpoint,
  link: ({ port }) => port.close(),
})

it('the checkpointer measures the log since its last restart, even if the file is longer', () => {
  const { path, db, write } = database()
  expect(logLength(join(tempDir(), 'none.sqlite'))).toBeUndefined()
  write(100)
  const first = logLength(path)
  expect(first?.frames).toBe((statSync(`${path}-wal`).size - 32) / (24 + PAGE_BYTES))
  db.exec('PRAGMA wal_checkpoint(RESTART)')
  write(10)
  const second = logLength(path)
  expect(second?.generation).not.toBe(first?.generation)
  expect(second?.frames).toBeGreaterThan(9)
  expect(second?.frames).toBeLessThan(30)
})

it('the checkpointer checkpoints a long log while the writer continues, and ignores a short one', async () => {
  const { path, write } = database()
  const checkpointer = new Checkpointer(path, idleWriter())
  write(100)
  checkpointer.noteWrite()
  for (let part = 0; part < 25; part++) write(100)
  expect(statSync(path).size).toBeLessThan(100 * PAGE_BYTES)
  await waitFor(
    () => {
      checkpointer.noteWrite()
      write(1)
      return statSync(path).size > 2_000 * PAGE_BYTES
    },
    { what: 'the file to grow' },
  )
  await checkpointer.close()
  checkpointer.noteWrite()
  await checkpointer.close()
  write(1)
})

it('the checkpointer checkpoints again after its thread has failed', async () => {
  const { path, write } = database()
  let state: Int32Array | undefined
  const checkpointer = new Checkpointer(path, {
    ...idleWriter(),
    link: ({ port, shared }) => {
      state ??= new Int32Array(shared)
      port.close()
    },
  })
  const noteWrite = (): void => {
    checkpointer.noteWrite()
    write(100)
  }
  renameSync(path, `${path}-away`)
  await waitFor(() => state?.some((number) => number !== 0) || noteWrite(), { what: 'the end of the thread' })
  renameSync(`${path}-away`, path)
  const grew = (): boolean => {
    noteWrite()
    return statSync(path).size > 2_000 * PAGE_BYTES
  }
  await waitFor(grew, { what: 'the file to grow' })
  await checkpointer.close()
})

it('the checkpointer restarts a full log although the writer keeps adding to it', async () => {
  const { path, db, write } = database()
  write(1)
  const first = logLength(path)?.generation
  let pages = 400
  const checkpointer = new Checkpointer(path, {
    pauseBatches: (onPaused) => {
      pages = 1
      onPaused()
    },
    checkpoint: () => {
      db.exec('PRAGMA wal_checkpoint(PASSIVE)')
      pages = 400
    },
    link: ({ port }) => port.close(),
  })
  await waitFor(
    () => {
      checkpointer.noteWrite()
      write(pages)
      return logLength(path)?.generation !== first
    },
    { what: 'the log to restart' },
  )
  await waitFor(() => pages === 400, { what: 'background batches to continue' })
  await checkpointer.close()
})

async function openWriter() {
  const path = join(tempDir(), 'a.sqlite')
  const failures: Error[] = []
  const client = await ThreadClient.open(
    { path, access: 'write', modules: [PROBE_MODULE] },
    {
      onFailure: (error) => failures.push(error),
      onDamage: () => undefined,
    },
  )
  onTestFinished(async () => {
    await client.close()
    expect(failures).toEqual([])
  })
  await client.run(install, {})
  return { path, client }
}

const row = (name: string) => ({ rows: [{ name }] })

it('the checkpointer delays only background batches until the log is checkpointed', async () => {
  const { path, client } = await openWriter()
  const before = logLength(path)?.generation
  await new Promise<void>((onPaused) => client.pauseBatches(onPaused))
  const order: string[] = []
  const background = ['b1', 'b2'].map(async (name) => {
    await client.run(addInBackground, row(name))
    order.push(name)
  })
  await client.run(add, row('a1'))
  await client.run(add, row('a2'))
  order.push('a2')
  client.checkpoint()
  await Promise.all(background)
  expect(order).toEqual(['a2', 'b1', 'b2'])
  // All of the log was in the file when the batches continued, so it could restart.
  expect(logLength(path)?.generation).not.toBe(before)
})

it('the checkpointer finishes delayed background batches when it closes', async () => {
  const { client } = await openWriter()
  await new Promise<void>((onPaused) => client.pauseBatches(onPaused))
  const background = client.run(addInBackground, row('b1'))
  const others = client.run(list, {})
  await client.close()
  expect(await others).toEqual([])
  expect(await background).toBeUndefined()
})
