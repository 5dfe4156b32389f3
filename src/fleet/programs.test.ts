import { closeSync, mkdirSync, openSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { expect, it, vi } from 'vitest'
import { tempDir } from '../../test/support/index.js'
import { findProgram, isProgram, usableProgram } from './programs.js'

it('finds programs in the PATH, then in more folders, and nothing that cannot be run', async () => {
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

it('does not use a program that is there and fails', async () => {
  expect(await usableProgram('false', [])).toBeUndefined()
  expect(await usableProgram('true', [])).toMatch(/^\/.*true$/)
  expect(await usableProgram('no-such-program', [])).toBeUndefined()
})

it('tries a program again that the system could not start', async () => {
  const folder = tempDir()
  const path = join(folder, 'own-tool')
  writeFileSync(path, '#!/bin/sh\n', { mode: 0o755 })
  vi.stubEnv('PATH', `${folder}${delimiter}${process.env.PATH}`)
  // The system starts no program that is being written.
  const writing = openSync(path, 'a')
  expect(await usableProgram('own-tool', [])).toBeUndefined()
  closeSync(writing)
  expect(await usableProgram('own-tool', [])).toBe(path)
  vi.unstubAllEnvs()
})
