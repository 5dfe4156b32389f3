import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { makeFolder, makeFolderSync, readFileIfThere, replaceFile } from './files.js'

let directory: string
let path: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'homeport-files-'))
  path = join(directory, 'kept')
})
afterEach(() => rm(directory, { recursive: true }))

it('writing replaces the content, restricts the file to its owner and leaves no other file behind', async () => {
  await writeFile(path, 'much longer than what follows', { mode: 0o644 })
  await replaceFile(path, 'new')
  expect(await readFile(path, 'utf8')).toBe('new')
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  expect(await readdir(directory)).toEqual(['kept'])
})

it('a half-written file of a crash affects neither the mode nor the content of the next one', async () => {
  await writeFile(`${path}.new`, 'half of a long secret', { mode: 0o666 })
  await replaceFile(path, 'whole')
  expect(await readFile(path, 'utf8')).toBe('whole')
  expect((await stat(path)).mode & 0o777).toBe(0o600)
})

it('reading distinguishes a missing file from an unreadable one', async () => {
  expect(await readFileIfThere(path)).toBeUndefined()
  await expect(readFileIfThere(directory)).rejects.toThrow('EISDIR')
})

it('`makeFolder` makes a folder with its parents for the owner only, and leaves one that exists alone', async () => {
  const deep = join(directory, 'a', 'b', 'c')
  await makeFolder(deep)
  await makeFolder(deep)
  expect((await stat(join(directory, 'a'))).mode & 0o777).toBe(0o700)
  expect([makeFolderSync(deep), makeFolderSync(join(deep, 'd', 'e'))]).toEqual([false, true])
  await writeFile(path, '')
  await expect(makeFolder(path)).rejects.toThrow('EEXIST')
  expect(() => makeFolderSync(join(path, 'below'))).toThrow('ENOTDIR')
})

it.runIf(process.platform === 'linux')(
  'making a folder fails, and does not try forever, where the system answers that its parent does not exist',
  async () => {
    await expect(makeFolder('/proc/none/below')).rejects.toThrow('ENOENT')
    expect(() => makeFolderSync('/proc/none/below')).toThrow('ENOENT')
  },
)
