import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { expect, it } from 'vitest'
import { runCli } from './index.js'
import { makeProgram } from './program.js'

const nothing = (): void => undefined

/** The path and the help of every command. */
async function commands(): Promise<{ path: string; help: string }[]> {
  // The name `completion` loads all commands.
  const program = await makeProgram(['completion'], { out: nothing, err: nothing }, nothing)
  const walk = (command: Command, path: string): { path: string; help: string }[] => {
    const said: string[] = []
    command.configureOutput({ writeOut: (text) => void said.push(text) })
    command.outputHelp()
    const help = said.join('')
    const inner = command.commands.filter((one) => one.name() !== 'help')
    return [{ path, help }, ...inner.flatMap((one) => walk(one, `${path} ${one.name()}`))]
  }
  return walk(program, 'homeport')
}

const all = await commands()
const isGroup = ({ help }: { help: string }): boolean => /^Commands:|^This machine:/m.test(help)

it('every command has a help that fits 80 columns and says what a reader needs', () => {
  expect(all.length).toBeGreaterThan(180)
  for (const { path, help } of all) {
    const wide = help.split('\n').filter((line) => line.length > 80)
    expect({ path, wide }).toEqual({ path, wide: [] })
    expect(help, path).not.toMatch(/\(default: (true|false)\)/)
    expect(help.split('\n').length, `${path}: the flags that matter`).toBeLessThan(130)
  }
})

it('the help has an example of every command, which names that command', () => {
  for (const one of all.filter((each) => !isGroup(each))) {
    const [, examples = ''] = one.help.split(/\nExamples?:\n/)
    expect(examples, one.path).toContain(one.path)
  }
})

it('the help shows the flags of all commands last', () => {
  const help = all.find(({ path }) => path === 'homeport db create')?.help ?? ''
  expect(help.indexOf('Every command:')).toBeGreaterThan(help.indexOf('--plan'))
  expect(help).toMatch(/Every command:\n {2}--json .*\n {2}--profile <name> .*\n/)
})

it.each([
  ['db creat', "unknown command 'creat'", '(Did you mean create?)', 'See: homeport db --help'],
  ['help dbb', "unknown command 'dbb'", '(Did you mean db?)', 'See: homeport --help'],
  ['dbb list', "unknown command 'dbb'", '(Did you mean db?)', 'See: homeport --help'],
  ['runs list --lable x', "unknown option '--lable'", '(Did you mean --label?)', 'See: homeport runs list --help'],
  [
    'start --retention-byte 1',
    "unknown option '--retention-byte'",
    '(Did you mean --retention-bytes?)',
    'See: homeport start --help',
  ],
  [
    'env --data',
    "unknown option '--data'",
    '(Did you mean one of --data-dir, --database?)',
    'See: homeport env --help',
  ],
  ['queue pub http://x', "unknown command 'pub'", '(Did you mean publish?)', 'See: homeport queue --help'],
  ['queue queues get', "missing required argument 'name'", '', 'See: homeport queue queues get --help'],
  ['runs list --state finished', 'Expected one of: active, succeeded, failed, cancelled.', '', 'runs list --help'],
])('names the nearest word and the help after a mistake: %s', async (line, ...expected) => {
  const said: string[] = []
  const code = await runCli(line.split(' '), { out: nothing, err: (text) => void said.push(text) })
  for (const text of expected) expect(said.join('')).toContain(text)
  expect(code).toBe(2)
})

it('the help of a command in a group is shown', async () => {
  const said: string[] = []
  const code = await runCli(['help', 'runs', 'cancel'], { out: (text) => void said.push(text), err: nothing })
  expect([code, said.join('')]).toEqual([0, expect.stringMatching(/^Usage: homeport runs cancel /)])
})

it('the help shows all options of the server on demand', async () => {
  const said: string[] = []
  const code = await runCli(['start', '--help-all'], { out: (text) => void said.push(text), err: nothing })
  expect(code).toBe(0)
  expect(said.join('')).toContain('--retention-bytes')
  expect(all.find(({ path }) => path === 'homeport start')?.help).not.toContain('--retention-bytes')
})

it('the help has no command that docs/cli.md lacks', () => {
  const page = readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8')
  const rows = [...page.matchAll(/^\| (`[^|]+) \| (.+) \|$/gm)].map(([, names = '', text = '']) => ({ names, text }))
  const missing = all
    .map(({ path }) => path.split(' '))
    .filter(([, command, inner]) => {
      const row = rows.find(({ names }) => new RegExp(`\`${command}\\b`).test(names))
      // Rows of large groups are lists of their commands.
      const isList = row !== undefined && /^\w[\w-]*(?:, \w[\w-]*)+(?:$|:)/.test(row.text)
      return (
        command !== undefined && (!row || (isList && inner !== undefined && !row.text.split(/[:,] ?/).includes(inner)))
      )
    })
  expect(missing).toEqual([])
})
