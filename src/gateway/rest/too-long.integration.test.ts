import { constants } from 'node:buffer'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { atCleanup } from '../../../test/support/index.js'
import { ClientMemoryBudget, systemClock } from '../../base/index.js'
import { ClientAddresses } from '../../http/index.js'
import { recordedLog } from '../../telemetry/testing/recorded-log.js'
import { SyncTokens } from '../replicas/sync-token.js'
import { Exchange } from './exchange.js'
import { HttpAnswers } from './http-answers.js'

/** The errors of V8 and of Node when an answer becomes longer than a string can be. */
it.each([
  ['text that is joined', () => 'x'.repeat(constants.MAX_STRING_LENGTH + 1)],
  ['bytes that become text', () => Buffer.alloc(constants.MAX_STRING_LENGTH + 1).toString('latin1')],
])('an answer that is too long, from %s, is a 413 and no defect', async (_source, make) => {
  const { logger, texts: logged } = recordedLog()
  const tokens = new SyncTokens(0)
  const server = createServer((request, response) => {
    const exchange = new Exchange(request, response, {
      tokens,
      answers: new HttpAnswers(tokens),
      addresses: new ClientAddresses([]),
      clock: systemClock,
      logger,
      memory: new ClientMemoryBudget(),
    })
    try {
      exchange.answer(make(), 0)
    } catch (error) {
      exchange.fail(error)
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atCleanup(() => void server.close())
  const { port } = server.address() as AddressInfo
  const response = await fetch(`http://127.0.0.1:${port}/`)
  const error = expect.stringMatching(/^ERR max request size exceeded\. Limit: \d+ bytes for a JSON response/)
  expect([response.status, await response.json(), logged]).toEqual([413, { error }, []])
})
