import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { tempDir } from '../../test/support/index.js'
import { replaceWhenComplete } from './output-file.js'

it('a command replaces a file only when its content is complete, and says why it cannot', async () => {
  const folder = tempDir()
  const file = join(folder, 'out')
  const write = (text: string) => async (partial: string) => writeFileSync(partial, text)
  await replaceWhenComplete(file, write('one'))
  const failing = replaceWhenComplete(file, async (partial) => {
    writeFileSync(partial, 'tw')
    throw new Error('cut')
  })
  await expect(failing).rejects.toThrow('cut')
  expect([readFileSync(file, 'utf8'), existsSync(`${file}.part`)]).toEqual(['one', false])
  await expect(replaceWhenComplete(folder, write('x'))).rejects.toThrow(`${folder} cannot be written: it is a folder.`)
  await expect(replaceWhenComplete(join(folder, 'none/out'), write('x'))).rejects.toThrow('its folder does not exist')
})
