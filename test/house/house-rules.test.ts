import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { run, tempDir } from '../support/index.js'

const SCRIPTS = fileURLToPath(new URL('../../scripts', import.meta.url))

/** Runs the house rules on a tree made of these files. */
async function broken(files: Readonly<Record<string, string>>): Promise<string[]> {
  const root = tempDir()
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), content)
  }
  const result = await run(process.execPath, [join(SCRIPTS, 'house-rules.mjs'), root])
  const lines = result.stdout.split('\n').filter(Boolean)
  expect(result.stderr).toBe('')
  expect(result.code).toBe(lines.length === 0 ? 0 : 1)
  return lines
}

/**
 * Each violation: where it is planted, the code, and the expected text. Joined at run time, so that no rule finds it
 * here.
 */
const word = (...parts: string[]) => parts.join('')
const PLANTED: readonly [path: string, code: string, expected: string][] = [
  [
    'src/queue/upward.ts',
    "import { x } from '../workflow/index.js'",
    'queue may not import from workflow: it may use base, contract, config, telemetry, store, http, certificates, cluster, accounts',
  ],
  [
    'src/base/up.ts',
    "import type { C } from '../config/index.js'",
    'base may not import from config: it may use nothing',
  ],
  ['src/gateway/side.ts', "const m = await import('../queue/index.js')", 'gateway may not import from queue'],
  ['src/attic/new.ts', 'const a = 1', 'the module attic has no place in scripts/house/modules.mjs'],
  ['src/bulk/back-door.ts', "import { y } from '../queue/inner.js'", 'import from queue/index.js, not from inside'],
  [
    'src/queue/driver.ts',
    "import Database from 'better-sqlite3'",
    'importing better-sqlite3 is banned here: only store/',
  ],
  ['src/accounts/pg.ts', "import { Pool } from 'pg'", 'importing pg is banned here: only store/ speaks to a database'],
  [
    'src/bulk/sql.ts',
    "import { sql } from 'kysely'",
    'importing kysely is banned here: only transactions contain queries',
  ],
  [
    'src/queue/transactions/up.ts',
    "import { b } from '../../bulk/transactions/b.js'",
    'queue may not import from bulk: it may use',
  ],
  ['src/http/run.ts', "import { spawn } from 'node:child_process'", 'importing node:child_process is banned here'],
  ['src/queue/nap.ts', "import * as t from 'node:timers/promises'", 'importing node:timers/promises is banned here'],
  ['src/queue/pair.ts', word('const a = { .', '..{ b: 1 } }'), 'a literal object is spread into another'],
  ['src/queue/wait.ts', 'setTimeout(go, 10)', 'setTimeout( is banned here: wait with the Clock of base'],
  ['src/queue/tick.ts', 'setInterval(go, 10)', 'setInterval( is banned here: wait with the Clock of base'],
  ['src/queue/now.ts', 'const t = Date.now()', 'Date.now( is banned here: ask the Clock of base'],
  ['src/queue/today.ts', 'const t = new Date()', 'new Date() is banned here: ask the Clock of base'],
  ['src/queue/print.ts', 'console.log(1)', 'console. is banned here: log with the Logger of telemetry'],
  ['src/fleet/setting.ts', 'const e = process.env.X', 'process.env is banned here: take it from the Config'],
  ['src/store/leave.ts', 'process.exit(1)', 'process.exit( is banned here: throw'],
  ['src/queue/dice.ts', 'const r = Math.random()', 'Math.random( is banned here: use newId or randomSecret'],
  ['src/queue/loose.ts', word('const l: a', 'ny = 1'), word('a', 'ny is banned here: use unknown and parse it')],
  ['src/queue/bare.ts', '\nexport function bare() {}', 'bare is exported without a doc comment'],
  ['src/queue/arrow.ts', '\nexport const arrow = (x: number) => x', 'arrow is exported without a doc comment'],
  ['src/queue/shape.ts', '\nexport interface Shape {}', 'Shape is exported without a doc comment'],
  ['src/queue/unused.ts', '/** Doc. */\nexport const unused = 1', 'unused is exported, and nobody imports it'],
  ['src/queue/err.ts', "logger.warn({ err: e, id }, 'no')", 'is banned here: log an error under the key error'],
  [
    'src/queue/dropped.ts',
    '/** Sends. */\nasync function send(): Promise<void> {}\nvoid send()',
    'the promise of send is dropped: catch its error, or say "Never rejects"',
  ],
  ['src/queue/later.ts', word('// TO', 'DO: more'), word('TO', 'DO: finish it')],
  ['src/queue/long.ts', 'const a = 1\n'.repeat(399), '400 lines, the limit is 400: split the file'],
  ['bench/long.bench.ts', 'const a = 1\n'.repeat(400), '401 lines, the limit is 400: split the file'],
  ['src/queue/focus.test.ts', word('it.on', "ly('x', f)"), word('it.on', 'ly is banned here: remove')],
  ['test/nap.test.ts', word('await new Promise((r) => set', 'Timeout(r, 50))'), 'is banned here: do not sleep'],
  ['test/nod.ts', word('await sle', 'ep(50)'), 'is banned here: do not sleep'],
]

describe('in a tree with one violation in each of many files', () => {
  let lines: string[] = []
  beforeAll(async () => {
    const doors = { 'src/queue/index.ts': 'bare(arrow)', 'src/workflow/index.ts': '', 'src/config/index.ts': '' }
    lines = await broken({ ...doors, ...Object.fromEntries(PLANTED.map(([path, code]) => [path, `${code}\n`])) })
  })

  it.each(PLANTED)('finds the violation in %s', (path, _, expected) => {
    const found = lines.filter((line) => line.startsWith(`${path}:`))
    expect(found).toHaveLength(1)
    expect(found[0]).toMatch(/^[^ ]+:\d+ /)
    expect(found[0]).toContain(expected)
  })

  it('finds nothing else', () => {
    expect(lines).toHaveLength(PLANTED.length)
  })
})

it('the house check is silent about code that keeps the rules', async () => {
  const lines = await broken({
    'src/base/clock.ts': '/** Why. */\nexport const wait = (go: () => void) => setTimeout(go, Date.now())\n',
    'src/config/process.ts': "import { x } from '../contract/errors.js'\nconst e = process.env\n",
    'src/contract/index.ts': '',
    'src/fleet/launcher.ts': "import { fork } from 'node:child_process'\nimport { n } from '../store/index.js'\n",
    'src/cli/show.ts': "import { f } from '../bulk/index.js'\nconsole.log(wait(f))\n",
    'src/queue/index.ts': '// setTimeout(x) and console.log in words\nconst s = "process.env Math.random()"\n',
    'src/queue/pattern.ts': 'const p = /console\\.log(x)/\nconst t = `Date.now()`\n',
    'src/queue/words.ts': word('const t = `$', '{name} holds: a', 'ny of them`\n'),
    'bench/load.bench.ts': word('await sle', 'ep(50)\n'),
    'src/queue/slow.test.ts': "import { spawn } from 'node:child_process'\nconst s = 'setTimeout(r)'\n",
    'src/bulk/transactions/pick.ts':
      "import { sql } from 'kysely'\nimport { all } from '../../store/operation.js'\nimport { q } from '../../queue/transactions/rows.js'\n",
    'src/store/batch.test.ts': "import { q } from '../queue/transactions/rows.js'\n",
    'src/queue/kept.ts':
      '/** Never rejects. */\nasync function f() {}\nvoid f()\nasync function g() {}\ng().catch(f)\n',
    'src/queue/overload.ts': '/** Why. */\nexport function f(a: 1): 1\nexport function f(a: 2): 2\n',
    'test/support/wait-for.ts': word('await new Promise((r) => set', 'Timeout(r, 50))\n'),
  })
  expect(lines).toEqual([])
})

it('the house check finds the words that the glossary replaces, in comments, texts, identifiers and pages', async () => {
  const lines = await broken({
    'src/queue/words.ts': '// A room.\nconst giveWay = 1\nconst t = "going on"\nconst OWED_BYTES = 2\n',
    'docs/page.md': 'It was canceled.\n',
  })
  expect(lines.map((line) => line.replace(/: write .*/, ''))).toEqual([
    'src/queue/words.ts:1 "room"',
    'src/queue/words.ts:4 "OWED"',
    'src/queue/words.ts:3 "going on"',
    'src/queue/words.ts:2 "give Way"',
    'docs/page.md:1 "canceled"',
  ])
})

it('the house check permits a replaced word where the wire or a stored row spells it', async () => {
  const lines = await broken({ 'src/queue/wire.ts': "const states = ['canceled', 'RUN_CANCELED']\n" })
  expect(lines).toEqual([])
})

it('the house check sees code in a template literal, and distinguishes a division from a regular expression', async () => {
  const lines = await broken({
    'src/queue/a.ts': word('const t = `at $', '{Date.now()} o`\n'),
    'src/queue/b.ts': 'const x = a / b; console.log(x) / 2\n',
  })
  expect(lines.map((line) => line.split(' ')[0])).toEqual(['src/queue/a.ts:1', 'src/queue/b.ts:1'])
})

it('the house check finds files that import each other, also through others', async () => {
  const lines = await broken({
    'src/queue/a.ts': "import { b } from './b.js'\n",
    'src/queue/b.ts': "import type { C } from './c.js'\n",
    'src/queue/c.ts': "import { a } from './a.js'\n",
    'src/queue/d.ts': "import { a } from './a.js'\n",
    'test/e.ts': "import { f } from './f.js'\n",
    'test/f.ts': "import { e } from './e.js'\n",
  })
  expect(lines).toEqual([
    'src/queue/a.ts:1 imports in a circle: src/queue/a.ts src/queue/b.ts src/queue/c.ts',
    'test/e.ts:1 imports in a circle: test/e.ts test/f.ts',
  ])
})

it('the house check keeps its output short', async () => {
  const files = Array.from({ length: 60 }, (_, i) => [`src/queue/f${i}.ts`, 'console.log(1)\n'] as const)
  const lines = await broken(Object.fromEntries(files))
  expect(lines).toHaveLength(51)
  expect(lines.at(-1)).toBe('... and 10 more')
})

it('the house check works from a copy, without installed packages', async () => {
  const copy = join(tempDir(), 'scripts')
  cpSync(SCRIPTS, copy, { recursive: true })
  const result = await run(process.execPath, [join(copy, 'house-rules.mjs')])
  expect(result).toMatchObject({ code: 0, stderr: '' })
})
