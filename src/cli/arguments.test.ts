import { expect, it } from 'vitest'
import { runCli } from './index.js'

async function called(...args: string[]): Promise<{ code: number; err: string }> {
  let err = ''
  const code = await runCli(args, { out: () => {}, err: (text) => (err += text) })
  return { code, err }
}

it.each([
  ['db plan shop bogus', "'bogus' is invalid for argument 'plan'. Expected one of: free, payg,"],
  ['db budget shop -- -5', "'-5' is invalid for argument 'dollars'. Expected a whole number, 0 to 1000000."],
  ['db eviction shop maybe', "'maybe' is invalid for argument 'on|off'. Expected one of: on, off."],
  ['db backups daily shop maybe', "'maybe' is invalid for argument 'on|off'. Expected one of: on, off."],
  ['bulk rate bulk_1 fast', "'fast' is invalid for argument 'items'. Expected a whole number, 0 or more."],
  ['bulk start cancelAll', "'cancelAll' is invalid for argument 'kind'. Expected one of: cancelRuns,"],
  ['teams add t a@example.com owner', "'owner' is invalid for argument 'role'. Expected one of: admin,"],
])('says what is wrong with an argument, before anything is asked of a server: %s', async (line, told) => {
  const args = line.split(' ')
  const { code, err } = await called(...args)
  expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(told) })
})
