import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { newPlace, placeFlags, tempDir } from '../../../test/support/index.js'
import { sha256Hex } from '../../base/index.js'
import * as backups from '../../databases/transactions/backups.js'
import { movedReason } from '../../fleet/index.js'
import { messageRow } from '../../queue/testing/rows.js'
import type { NewMessage } from '../../queue/transactions/messages.js'
import * as messages from '../../queue/transactions/messages.js'
import { openStore } from '../../store/index.js'
import { changeBehind, damagePage } from '../../store/testing/inspect.js'
import { runCli } from '../index.js'
import type { Finding } from './finding.js'

async function diagnose(dataDir: string, ...args: readonly string[]) {
  const out: string[] = []
  const place = await newPlace({ dataDir })
  const io = { out: (text: string) => void out.push(text), err: () => undefined }
  const code = await runCli(['doctor', ...placeFlags(place), '--json', ...args], io)
  const { checks } = JSON.parse(out.join('')) as { checks: Finding[] }
  return { code, of: (name: string) => checks.find((check) => check.name === name) }
}

const message = (index: number): NewMessage =>
  messageRow({
    message_id: `msg_${index}`,
    account_id: 'acc_1',
    url: 'http://example.com/',
    body: Buffer.from(`body ${index} `.repeat(30)),
    created_at: 1,
    host: 'example.com',
  })

/** A data directory with a store of some hundred messages and one backup. */
async function usedDataDir(): Promise<string> {
  const dataDir = tempDir()
  const store = await openStore({ location: 'sqlite', dataDir, onFailure: () => undefined })
  await store.run(
    messages.insert,
    Array.from({ length: 300 }, (_, index) => message(index)),
  )
  const backup = { backup_id: 'bak_1', database_id: 'db_1', name: 'b', kind: 'manual', created_at: 1 } as const
  await store.run(backups.add, { backup })
  const figures = { sizeBytes: 4, keyCount: 1, dataBytes: 1, sha256: sha256Hex('data') }
  await store.run(backups.finish, { backupId: 'bak_1', result: { kind: 'completed', ...figures }, at: 1 })
  mkdirSync(join(dataDir, 'backups', 'db_1'), { recursive: true })
  writeFileSync(join(dataDir, 'backups', 'db_1', 'bak_1.rdb'), 'data')
  // The check also works while a server uses the store.
  expect((await diagnose(dataDir)).of('store')).toMatchObject({ status: 'ok' })
  await store.close()
  return dataDir
}

it('the doctor reads the whole store and all backups with --deep', async () => {
  const dataDir = await usedDataDir()
  const { of } = await diagnose(dataDir, '--deep')
  expect(of('store')).toMatchObject({ status: 'ok', found: expect.stringContaining('300 contents compared') })
  expect(of('backups')).toMatchObject({ status: 'ok' })
})

it('the doctor finds a store that cannot be opened, and one with a damaged page', async () => {
  const dataDir = await usedDataDir()
  damagePage(dataDir, { tree: 'messages', type: 'leaf', index: 5 })
  const broken = await diagnose(dataDir)
  expect(broken.of('store')).toMatchObject({ status: 'fail', found: expect.stringMatching(/^damaged: messages: /) })
  expect(broken.code).toBe(1)
  writeFileSync(join(dataDir, 'homeport.sqlite'), 'no database '.repeat(1_000))
  expect((await diagnose(dataDir)).of('store')).toMatchObject({
    status: 'fail',
    found: 'cannot be read: file is not a database (SQLITE_NOTADB)',
  })
})

it('the doctor finds changed contents and backups by their checksums', async () => {
  const dataDir = await usedDataDir()
  changeBehind(dataDir, "UPDATE messages SET body = cast('other' AS blob) WHERE message_id = 'msg_7'")
  writeFileSync(join(dataDir, 'backups', 'db_1', 'bak_1.rdb'), 'dato')
  expect((await diagnose(dataDir)).of('store')).toMatchObject({ status: 'ok' })
  const { of } = await diagnose(dataDir, '--deep')
  expect(of('store')).toMatchObject({ status: 'fail', found: expect.stringContaining('the body of msg_7 has changed') })
  expect(of('backups')).toMatchObject({ status: 'fail', found: expect.stringContaining('bak_1.rdb has changed') })
})

it('the doctor reports a missing store, and the entries of the quarantine', async () => {
  const dataDir = tempDir()
  mkdirSync(join(dataDir, 'databases', 'one'), { recursive: true })
  mkdirSync(join(dataDir, 'quarantine', 'entry-1', 'data'), { recursive: true })
  const { code, of } = await diagnose(dataDir)
  expect(code).toBe(1)
  expect(of('store')).toMatchObject({ status: 'fail', found: expect.stringContaining('homeport.sqlite is missing') })
  expect(of('quarantine')).toMatchObject({ status: 'warn', found: expect.stringContaining('entry-1') })
  const note = { kind: 'database', databaseId: 'd', from: 'databases/d/r', reason: movedReason('b'), movedAt: 1 }
  writeFileSync(join(dataDir, 'quarantine', 'entry-1', 'note.json'), JSON.stringify(note))
  const moved = { status: 'ok', found: 'old files of 1 database that other nodes serve now' }
  expect((await diagnose(dataDir)).of('quarantine')).toMatchObject(moved)
})
