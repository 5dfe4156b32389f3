import { writeFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { tempDir } from '../../test/support/index.js'
import { openSqlite } from '../base/index.js'
import { sqliteFileIn } from './open.js'
import { copyRunning } from './running-copy.js'

it('the error says why a store cannot be copied', async () => {
  const [from, into] = [tempDir(), tempDir()]
  openSqlite(sqliteFileIn(from)).close()
  writeFileSync(sqliteFileIn(into), 'there is something')
  await expect(copyRunning(from, into)).rejects.toMatchObject({
    message: expect.stringMatching(/file is not a database|already exists/),
    code: expect.stringMatching(/./),
  })
})
