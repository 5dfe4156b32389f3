import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { readFileIfThere, replaceFile } from './files.js'

let directory: string
let path: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'homeport-files-'))
  path = join(directory, 'kept')
})
afterEach(() => rm(directory, { recursive: true }))

it('a replaced file holds the new content, belongs to its owner alone and leaves nothing beside it', async () => {
  await writeFile(path, 'much longer than what follows', { mode: 0o644 })
  await replaceFile(path, 'new')
  expect(await readFile(path, 'utf8')).toBe('new')
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  expect(await readdir(directory)).toEqual(['kept'])
})

it('what a crash left half written neither opens the next file to others nor stays in it', async () => {
  await writeFile(`${path}.new`, 'half of a long secret', { mode: 0o666 })
  await replaceFile(path, 'whole')
  expect(await readFile(path, 'utf8')).toBe('whole')
  expect((await stat(path)).mode & 0o777).toBe(0o600)
})

it('a file that is missing is told from one that cannot be read', async () => {
  expect(await readFileIfThere(path)).toBeUndefined()
  await expect(readFileIfThere(directory)).rejects.toThrow('EISDIR')
})
