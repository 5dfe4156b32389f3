import { readdirSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { operationNamed } from './store/operation.js'
import './transactions.js'

it('the list of transactions knows every transaction: a store thread that lacks one refuses it', () => {
  const all = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' })
  const files = all.filter((file) => /[/\\]transactions[/\\].*(?<!\.test)\.ts$/.test(file))
  const named = files.flatMap((file) => {
    const text = readFileSync(`${import.meta.dirname}/${file}`, 'utf8')
    return [...text.matchAll(/= (?:read|write)\(\s*'([^']+)'/g)].map(([, name = '']) => name)
  })
  expect(named.length).toBeGreaterThan(200)
  const unknown = named.filter((name) => {
    try {
      return operationNamed(name) === undefined
    } catch {
      return true
    }
  })
  expect(unknown).toEqual([])
})
