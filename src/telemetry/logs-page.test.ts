import { readdirSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { type EventDeclaration, nameOf } from '../contract/logs/declaration.js'
import { LOG_EVENTS } from '../contract/logs/events.js'
import { LOG_FIELDS } from '../contract/logs/fields.js'
import { logsPage } from './logs-page.js'

const SRC = new URL('../', import.meta.url)

it('docs/logs.md is the page of the declarations; npm run docs writes it', () => {
  expect(readFileSync(new URL('../docs/logs.md', SRC), 'utf8')).toBe(logsPage())
})

// The types refuse an event that is not declared.
it('every declared event is logged somewhere, and every field is declared by an event', () => {
  const code = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts') && !path.startsWith('contract/'))
    .map((path) => readFileSync(new URL(path, SRC), 'utf8'))
    .join('\n')
  expect(Object.keys(LOG_EVENTS).filter((name) => !code.includes(`'${name}'`))).toEqual([])
  const used = new Set(Object.values<EventDeclaration>(LOG_EVENTS).flatMap(({ fields }) => fields.map(nameOf)))
  expect(Object.keys(LOG_FIELDS).filter((name) => ![...used].some((field) => field === name))).toEqual([])
})

it('a text inserts only fields that every line of its event has', () => {
  for (const [name, { text, fields }] of Object.entries<EventDeclaration>(LOG_EVENTS)) {
    const inserted = [...text.matchAll(/\{(\w+)\}/g)].map(([, field]) => field)
    expect(
      inserted.filter((field) => !fields.some((spec) => spec === field)),
      name,
    ).toEqual([])
  }
})
