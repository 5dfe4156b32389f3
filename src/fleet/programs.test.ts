import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
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
