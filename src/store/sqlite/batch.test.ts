import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openSqlite } from '../../base/index.js'
import { operationNamed } from '../operation.js'
import { add, install, list, type ProbeRow } from '../testing/probe.js'
import { type Turn, writeBatch, writeShared } from './batch.js'
import { SqliteConnection } from './connection.js'
import type { Call } from './protocol.js'

let directory: string
let writer: SqliteConnection
let reader: SqliteConnection

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'homeport-'))
  writer = new SqliteConnection(join(directory, 'store.sqlite'), 'write')
  writer.inTransaction(() => writer.run(operationNamed(install.name), {}))
  reader = new SqliteConnection(join(directory, 'store.sqlite'), 'read')
})

afterEach(() => {
  reader.close()
  writer.close()
  rmSync(directory, { recursive: true, force: true })
})

let lastId = 0
const adding = (name: string, refuseWith?: string): Call => ({
  id: ++lastId,
  name: add.name,
  args: { rows: [{ name }], ...(refuseWith !== undefined && { refuseWith }) },
})

/** Names of the committed rows. */
function stored(): string[] {
  const rows = reader.inSnapshot(() => reader.run(operationNamed(list.name), {})) as ProbeRow[]
  return rows.map((row) => row.name)
}

/** Yields the turns, and records before each one what a reader sees. */
function* yielding(turns: readonly Turn[], seen: string[][] = []): Generator<Turn> {
  for (const turn of turns) {
    seen.push(stored())
    yield turn
  }
  seen.push(stored())
}

const bare = (...calls: Call[]): Turn => ({ kind: 'bare', calls })
const guarded = (...calls: Call[]): Turn => ({ kind: 'guarded', calls })

it('the writer commits all turns together', () => {
  const seen: string[][] = []
  const ran: Call[] = []
  const turns = [bare(adding('b1')), bare(adding('b2')), guarded(adding('a1'), adding('a2'))]
  const outcomes = writeShared(writer, ran, yielding(turns, seen))
  expect(outcomes).toEqual([{ value: 1 }, { value: 1 }, { value: 1 }, { value: 1 }])
  expect(ran).toEqual(turns.flatMap((turn) => turn.calls))
  expect(seen).toEqual([[], [], [], []])
  expect(stored()).toEqual(['b1', 'b2', 'a1', 'a2'])
})

it('the writer rolls back only the refused call that joined, without repeating the others', () => {
  const ran: Call[] = []
  const seen: string[][] = []
  const turns = [bare(adding('b1')), guarded(adding('a1'), adding('a2', 'no'), adding('a3'))]
  const outcomes = writeShared(writer, ran, yielding(turns, seen))
  expect(outcomes.map((outcome) => 'value' in outcome)).toEqual([true, true, false, true])
  expect(seen).toHaveLength(3)
  expect(stored()).toEqual(['b1', 'a1', 'a3'])
})

it('the writer keeps the changes of other batches when one throws', () => {
  const ran: Call[] = []
  const turns = [bare(adding('b1')), bare(adding('b1')), bare(adding('b2')), guarded(adding('a1'))]
  const outcomes = writeShared(writer, ran, yielding(turns))
  expect(outcomes.map((outcome) => 'value' in outcome)).toEqual([true, false])
  expect(ran).toHaveLength(2)
  expect(stored()).toEqual(['b1'])
})

it('the writer refuses all calls together while another process locks the file', () => {
  const shell = openSqlite(join(directory, 'store.sqlite'))
  try {
    shell.exec('BEGIN IMMEDIATE')
    const failure = expect.objectContaining({ code: 'store_unavailable' })
    expect(writeBatch(writer, [adding('a'), adding('b')])).toEqual([{ failure }, { failure }])
  } finally {
    shell.close()
  }
  expect([writeBatch(writer, [adding('c'), adding('d')]).length, stored()]).toEqual([2, ['c', 'd']])
})
