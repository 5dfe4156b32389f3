import { EventEmitter } from 'node:events'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { loadCompiled } from './compiled-program.js'

let folder = ''
let file = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'compiled-'))
  file = join(folder, 'program.cjs')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const write = (answer: number): void =>
  writeFileSync(file, `(function (exports, require, module) { exports.answer = () => ${answer} })`)

/** Runs the program and ends. Returns its answer, and whether V8 had to compile it. */
function live(spare?: string): { answer: number; isCompiled: boolean } {
  const ending = new EventEmitter()
  const { answer } = loadCompiled(file, spare, ending) as { answer: () => number }
  const found = { answer: answer(), isCompiled: ending.listenerCount('exit') > 0 }
  ending.emit('exit')
  return found
}

const compiled = (): string => readdirSync(folder).find((name) => name.startsWith('program.cjs.')) ?? ''

it('a start compiles a program once', () => {
  write(41)
  expect([live(), live(), live()]).toEqual([
    { answer: 41, isCompiled: true },
    { answer: 41, isCompiled: false },
    { answer: 41, isCompiled: false },
  ])
  expect(readdirSync(folder)).toHaveLength(2)
})

it('a start compiles a changed program of the same length, which V8 cannot distinguish from the old one', () => {
  write(41)
  live()
  write(42)
  expect([live(), live()]).toEqual([
    { answer: 42, isCompiled: true },
    { answer: 42, isCompiled: false },
  ])
})

it.each<[string, (path: string) => void]>([
  ['with a damaged byte, on which V8 would crash', (path) => damage(path)],
  ['that is cut off', (path) => truncateSync(path, 100)],
  ['that is empty', (path) => truncateSync(path, 0)],
  ['that others may write', (path) => chmodSync(path, 0o666)],
])('a start replaces a compiled file %s', (_, harm) => {
  write(41)
  live()
  harm(join(folder, compiled()))
  expect([live(), live()]).toEqual([
    { answer: 41, isCompiled: true },
    { answer: 41, isCompiled: false },
  ])
})

it('a start uses the spare folder when it cannot write beside the program', () => {
  write(41)
  live()
  const name = compiled()
  rmSync(join(folder, name))
  mkdirSync(join(folder, name))
  const spare = join(folder, 'spare')
  expect([live(spare), live(spare)]).toEqual([
    { answer: 41, isCompiled: true },
    { answer: 41, isCompiled: false },
  ])
  expect(readdirSync(spare)).toEqual([name])
  expect(readdirSync(folder).sort()).toEqual(['program.cjs', name, 'spare'])
})

function damage(path: string): void {
  const content = readFileSync(path)
  const at = content.length >> 1
  content[at] = (content[at] ?? 0) ^ 0x40
  writeFileSync(path, content)
}
