import { PassThrough } from 'node:stream'
import { expect, it, vi } from 'vitest'
import type { Io, Terminal } from '../io.js'
import { instant } from '../remote/values.js'
import { askSecret, confirm } from './ask.js'
import { bytes, duration, moment, momentFromNow, sparkline, withMoments } from './figures.js'
import { progressOf } from './progress.js'
import { type Column, renderFacts, renderTable } from './table.js'

/** A fake terminal, and what was written to it. */
function fakeTerminal(terminal: Partial<Terminal> | undefined) {
  const said: string[] = []
  const input = new PassThrough() as unknown as NodeJS.ReadStream
  const known = { out: false, err: false, asks: false, noColor: false, columns: () => 80, input }
  const io: Io = {
    out: (text) => void said.push(text),
    err: (text) => void said.push(text),
    ...(terminal && { terminal: { ...known, ...terminal } }),
  }
  return { io, said, input }
}

const COLUMNS: Column<{ id: string; url: string; count: number }>[] = [
  { title: 'ID', value: (one) => one.id },
  { title: 'URL', value: (one) => one.url, cuts: true },
  { title: 'COUNT', value: (one) => one.count, align: 'right', tone: () => 'red' },
]
const ROWS = [
  { id: 'msg_1', url: 'https://example.com/a/long/path/that/does/not/fit', count: 7 },
  { id: 'msg_22', url: 'x', count: 1234 },
]

it('a command aligns columns, and cuts no value in a pipe', () => {
  expect(renderTable(fakeTerminal(undefined).io, COLUMNS, ROWS)).toBe(
    'ID      URL                                                COUNT\n' +
      'msg_1   https://example.com/a/long/path/that/does/not/fit      7\n' +
      'msg_22  x                                                   1234\n',
  )
})

it('a command cuts only columns that may be cut on a terminal, so that ids can be copied', () => {
  const { io } = fakeTerminal({ out: true, noColor: true, columns: () => 40 })
  const lines = renderTable(io, COLUMNS, ROWS).trimEnd().split('\n')
  expect(lines.map(({ length }) => length)).toEqual([40, 40, 40])
  expect(lines[1]).toBe('msg_1   https://example.com/a/lo…      7')
})

it('a command aligns columns beside letters and emoji of two columns, and accents of none', () => {
  const rows = ['東京', '🚀 go', 'cafe\u0301', 'x'].map((id) => ({ id, url: '大阪大阪大阪大阪', count: 1 }))
  const { io } = fakeTerminal({ out: true, noColor: true, columns: () => 23 })
  const lines = renderTable(io, COLUMNS, rows).trimEnd().split('\n')
  expect(lines.slice(1)).toEqual([
    '東京   大阪大阪…      1',
    '🚀 go  大阪大阪…      1',
    'cafe\u0301   大阪大阪…      1',
    'x      大阪大阪…      1',
  ])
})

it('a command gives a column of notes no space when there is no note', () => {
  const notes = (note: string | undefined) => [
    ...COLUMNS.slice(0, 2),
    { title: '', cuts: true as const, value: () => note },
  ]
  const lines = (note?: string) =>
    renderTable(fakeTerminal({ out: true, noColor: true, columns: () => 30 }).io, notes(note), ROWS)
  expect(lines().split('\n')[1]).toBe('msg_1   https://example.com/a…')
  expect(lines('late').split('\n')[1]).toMatch(/^msg_1 {3}https:.*… {2}late$/)
})

it('a command does without extra columns on a narrow terminal, and never in a pipe', () => {
  const columns = [...COLUMNS, { title: 'MORE', value: () => 'x'.repeat(12), isExtra: true }]
  const titles = (terminal: Partial<Terminal> | undefined) =>
    renderTable(fakeTerminal(terminal).io, columns, ROWS).split('\n')[0]?.split(/ +/)
  expect(titles({ out: true, noColor: true, columns: () => 40 })).toEqual(['ID', 'URL', 'COUNT', 'MORE'])
  expect(titles({ out: true, noColor: true, columns: () => 30 })).toEqual(['ID', 'URL', 'COUNT'])
  expect(titles(undefined)).toEqual(['ID', 'URL', 'COUNT', 'MORE'])
})

it('a command uses colours on a terminal, but not with NO_COLOR or in a pipe', () => {
  const coloured = renderTable(fakeTerminal({ out: true }).io, COLUMNS, ROWS)
  expect(coloured).toContain('\u001b[31m7\u001b[0m')
  for (const terminal of [{ out: true, noColor: true }, { out: false }])
    expect(renderTable(fakeTerminal(terminal).io, COLUMNS, ROWS)).not.toContain('\u001b')
})

it('a command escapes control characters in foreign text', () => {
  const row = { id: 'a\u001b[2J\nb', url: '\u202e', count: 1 }
  expect(renderTable(fakeTerminal(undefined).io, COLUMNS, [row])).toContain('a\\u001b[2J\\nb  \\u202e')
  expect(renderFacts(fakeTerminal(undefined).io, [['name', 'a\rb']])).toBe('name  a\\u000db\n')
})

it('a command formats sizes, durations, times and series', () => {
  expect([bytes(0), bytes(1536), bytes(3 * 2 ** 30), bytes(Number.MAX_SAFE_INTEGER)]).toEqual([
    '0 B',
    '1.5 KB',
    '3 GB',
    'no limit',
  ])
  expect([duration(350), duration(61_400), duration(93_784_000)]).toEqual(['350ms', '1m 1s', '1d 2h'])
  expect([sparkline([0, 1, 2, 4]), sparkline([0, 0]), sparkline([])]).toEqual(['▁▃▅█', '▁▁', ''])
  expect(sparkline([4, 0, 0, 0, 2], 3)).toBe('█▁▅')
})

it('a command moves a bar on a terminal, and writes lines elsewhere', () => {
  const moving = fakeTerminal({ err: true })
  const bar = progressOf(moving.io, 'runs')
  bar.at(50, 100)
  bar.end()
  expect(moving.said.join('')).toContain(' 50 %  50 of 100 runs')
  const plain = fakeTerminal({})
  const lines = progressOf(plain.io, 'runs')
  lines.at(0, 0)
  for (const done of [0, 1, 2, 50, 51, 100]) lines.at(done, 100)
  expect(plain.said).toEqual(['0 %: 0 of 100 runs\n', '50 %: 50 of 100 runs\n', '100 %: 100 of 100 runs\n'])
})

it('a command asks for confirmation, and refuses without a terminal and --yes', async () => {
  await expect(confirm(fakeTerminal(undefined).io, { question: 'Delete?', isGiven: false })).rejects.toThrow(
    'pass --yes',
  )
  await confirm(fakeTerminal(undefined).io, { question: 'Delete?', isGiven: true })
  for (const [typed, answer, isDone] of [
    [undefined, 'y', true],
    [undefined, '', false],
    ['shop', 'y', false],
    ['shop', 'shop', true],
  ] as const) {
    const { io, input } = fakeTerminal({ asks: true })
    const asked = confirm(io, { question: 'Delete?', isGiven: false, ...(typed && { typed }) })
    input.push(`${answer}\n`)
    if (isDone) await asked
    else await expect(asked).rejects.toThrow('Nothing was changed')
  }
})

it.each(['\u0003', '\u0004'])(
  'a command changes nothing when a question is answered with Ctrl-C or Ctrl-D: %j',
  async (key) => {
    const { io, input } = fakeTerminal({ asks: true })
    const asked = io.terminal && askSecret(io.terminal, '')
    input.push(key)
    await expect(asked).rejects.toMatchObject({ code: 'cli_misused' })
  },
)

it.each([
  ['UTC', '2026-11-28 10:07:52Z'],
  ['Europe/Berlin', '2026-11-28 11:07:52+01:00'],
  ['America/St_Johns', '2026-11-28 06:37:52-03:30'],
])('a command writes times in the zone of the machine, as flags take them: %s', (zone, expected) => {
  vi.stubEnv('TZ', zone)
  try {
    const at = Date.UTC(2026, 10, 28, 10, 7, 52)
    expect(moment(at)).toBe(expected)
    expect(instant(expected)).toBe(at)
    expect(withMoments('until 2026-11-28T10:07:52.048Z, then 2026')).toBe(`until ${expected}, then 2026`)
    expect(momentFromNow(at, at + 5_000)).toBe(`${expected} (5s ago)`)
    expect(momentFromNow(at, at - 7_200_000)).toBe(`${expected} (in 2h)`)
    expect(moment(undefined)).toBeUndefined()
  } finally {
    vi.unstubAllEnvs()
  }
})
