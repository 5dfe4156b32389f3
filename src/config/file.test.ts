import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { readConfigFile } from './index.js'

const root = mkdtempSync(join(tmpdir(), 'hp-file-'))
afterAll(() => rmSync(root, { recursive: true }))

it('the default configuration file is read if it exists', () => {
  expect(readConfigFile(undefined, root)).toBeUndefined()
  writeFileSync(join(root, 'homeport.config.json'), '{"apiPort": 9000}')
  expect(readConfigFile(undefined, root)?.content).toEqual({ apiPort: 9000 })
})

it('a named configuration file that is missing or malformed is refused without quoting its content', () => {
  expect(() => readConfigFile('none.json', root)).toThrow(`${join(root, 'none.json')} cannot be used: there is no such`)
  writeFileSync(join(root, 'broken.json'), '{"store": "postgres://u:hunter2@')
  expect(() => readConfigFile('broken.json', root)).toThrow('it is not valid JSON')
  expect(() => readConfigFile('broken.json', root)).not.toThrow('hunter2')
})
