import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, it, onTestFinished, vi } from 'vitest'
import { tempDir } from '../../../test/support/temp-dir.js'
import { SqliteEngine } from './engine.js'

it('prepares each statement once and keeps it, so that the collector of garbage never sees one', () => {
  const prepare = vi.spyOn(Database.prototype, 'prepare')
  const pragma = vi.spyOn(Database.prototype, 'pragma')
  onTestFinished(() => void vi.restoreAllMocks())
  const engine = new SqliteEngine(join(tempDir(), 'a.sqlite'), 'write')
  onTestFinished(() => engine.close())
  for (let round = 0; round < 3; round++) {
    engine.migrate(0)
    engine.inTransaction(() => engine.inSavepoint(() => undefined))
    engine.inSnapshot(() => undefined)
    engine.checkpoint()
  }
  const texts = prepare.mock.calls.map(([text]) => text)
  expect(texts).toContain('COMMIT')
  expect(new Set(texts).size).toBe(texts.length)
  expect(pragma).not.toHaveBeenCalled()
})
