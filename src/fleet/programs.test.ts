import { closeSync, mkdirSync, openSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { expect, it, vi } from 'vitest'
import { tempDir } from '../../test/support/index.js'
import { findProgram, isProgram, usableProgram } from './programs.js'

it('programs are found in the PATH, then in more folders, if they can be run', async () => {
  const folder = tempDir()
  writeFileSync(join(folder, 'own-program'), '', { mode: 0o755 })
  writeFileSync(join(folder, 'own-text'), '', { mode: 0o644 })
  mkdirSync(join(folder, 'own-folder'))
  symlinkSync('nowhere', join(folder, 'own-link'))
  expect(await findProgram('own-program', ['relative', folder])).toBe(join(folder, 'own-program'))
  for (const name of ['own-text', 'own-folder', 'own-link']) expect(await findProgram(name, [folder])).toBeUndefined()
  expect(await findProgram('own-program')).toBeUndefined()
  expect(await isProgram((await findProgram('sh', [folder])) ?? '')).toBe(true)
})

it('a program that fails is not used', async () => {
  expect(await usableProgram('false', [])).toBeUndefined()
  expect(await usableProgram('true', [])).toMatch(/^\/.*true$/)
  expect(await usableProgram('no-such-program', [])).toBeUndefined()
})

it('a program that the system could not start is tried again', async () => {
  const folder = tempDir()
  const path = join(folder, 'own-tool')
  writeFileSync(path, '#!/bin/sh\n', { mode: 0o755 })
  vi.stubEnv('PATH', `${folder}${delimiter}${process.env.PATH}`)
  // The system does not start a program while its file is open for writing.
  const writing = openSync(path, 'a')
  expect(await usableProgram('own-tool', [])).toBeUndefined()
  closeSync(writing)
  expect(await usableProgram('own-tool', [])).toBe(path)
  vi.unstubAllEnvs()
})
