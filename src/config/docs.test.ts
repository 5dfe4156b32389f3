import { readdirSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { configurationPage, OPTION_NAMES, optionOf } from './index.js'

it('docs/configuration.md matches the table of options (run `npm run docs` to update it)', () => {
  const page = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8')
  expect(page).toBe(configurationPage())
})

it('every option has a meaning of one sentence', () => {
  for (const name of OPTION_NAMES) expect(optionOf(name).meaning, name).toMatch(/^[A-Z].*[^.]\.$/)
})

it('no other page repeats the default of an option', () => {
  const docs = new URL('../../docs/', import.meta.url)
  const option = `\`(?:${OPTION_NAMES.join('|')})\``
  const repeated = new RegExp(`${option}(?:\\]\\([^)]*\\))? \\(\\d|\\d[^(|]{0,12} \\(\\[?${option}`, 'g')
  const found = readdirSync(docs)
    .filter((name) => name.endsWith('.md') && name !== 'configuration.md')
    .flatMap((name) => readFileSync(new URL(name, docs), 'utf8').match(repeated) ?? [])
  expect(found).toEqual([])
})
