import { expect, it } from 'vitest'
import { tempDir } from '../../test/support/temp-dir.js'
import { runCli } from './index.js'

async function call(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const out: string[] = []
  const err: string[] = []
  const code = await runCli(args, { out: (text) => void out.push(text), err: (text) => void err.push(text) })
  return { code, out: out.join(''), err: err.join('') }
}

it.each([
  ['db plan shop bogus', "'bogus' is invalid for argument 'plan'. Expected one of: free, payg,"],
  ['db budget shop -- -5', "'-5' is invalid for argument 'dollars'. Expected a whole number, 0 to 1000000."],
  ['db eviction shop maybe', "'maybe' is invalid for argument 'on|off'. Expected one of: on, off."],
  ['db backups daily shop maybe', "'maybe' is invalid for argument 'on|off'. Expected one of: on, off."],
  ['bulk rate bulk_1 fast', "'fast' is invalid for argument 'items'. Expected a whole number, 0 or more."],
  ['bulk start cancelAll', "'cancelAll' is invalid for argument 'kind'. Expected one of: cancelRuns,"],
  ['teams add t a@example.com owner', "'owner' is invalid for argument 'role'. Expected one of: admin,"],
])('the command line reports an invalid argument without calling a server: %s', async (line, message) => {
  const args = line.split(' ')
  const { code, err } = await call(...args)
  expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(message) })
})

it('the command line says what to do when there is no server', async () => {
  const { code, err } = await call('runs', 'explain', 'wfr_1', '--data-dir', tempDir())
  expect(code).toBe(4)
  expect(err).toContain('Start the server once')
})

it('the command line lists the commands of a group, and refuses missing arguments', async () => {
  const help = await call('runs', '--help')
  for (const name of ['list', 'show', 'explain', 'cancel']) expect(help.out).toContain(name)
  expect((await call('runs', 'explain')).code).toBe(2)
})
