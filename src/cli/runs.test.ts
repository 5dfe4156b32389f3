import { expect, it } from 'vitest'
import { tempDir } from '../../test/support/temp-dir.js'
import { runCli } from './index.js'

async function run(...args: string[]) {
  const out: string[] = []
  const err: string[] = []
  const code = await runCli(args, { out: (text) => void out.push(text), err: (text) => void err.push(text) })
  return { code, out: out.join(''), err: err.join('') }
}

it('says what to do when there is no server to ask', async () => {
  const { code, err } = await run('runs', 'explain', 'wfr_1', '--data-dir', tempDir())
  expect(code).toBe(4)
  expect(err).toContain('Start the server once')
})

it('lists its commands, and refuses one that it does not have', async () => {
  const help = await run('runs', '--help')
  for (const name of ['list', 'show', 'explain', 'cancel']) expect(help.out).toContain(name)
  expect((await run('runs', 'explain')).code).toBe(2)
})
