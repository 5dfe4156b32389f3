import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { OPTION_NAMES } from '../../src/config/index.js'

const SRC = fileURLToPath(new URL('../../src', import.meta.url))

it('every option of the configuration is used by some part of the product', () => {
  const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  const outside = files.filter(
    (path) => path.endsWith('.ts') && !path.endsWith('.test.ts') && !/^(config\/(?!relations)|cli\/)/.test(path),
  )
  const sources = outside.map((path) => readFileSync(join(SRC, path), 'utf8')).join('\n')
  const isUsed = (name: string) => new RegExp(`\\b${name}\\b`).test(sources)
  expect(OPTION_NAMES.filter((name) => !isUsed(name))).toEqual([])
})
