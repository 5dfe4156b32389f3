import { type ClientRequest, request } from 'node:http'
import { beforeAll, beforeEach, expect, it } from 'vitest'
import { waitFor } from '../../test/support/wait-for.js'
import { HomeportError } from '../contract/errors.js'
import type { Store } from '../store/index.js'
import { describeOnEveryStore } from '../store/testing/index.js'
import { type BulkUnderTest, startBulk } from './testing/harness.js'
import { startRuns, statesOf } from './testing/runs.js'

const RUNS = '/v2/workflows/runs'
/** Enough for several pieces. */
const UNKNOWN = Array.from({ length: 9_000 }, (_, index) => `wfr_unknown${String(index).padStart(12, '0')}`)

let accounts = 0
const newAccount = () => `arriving-${++accounts}`

/** A cancel of which only the beginning was sent. */
interface HalfSent {
  readonly sending: ClientRequest
  readonly answer: Promise<{ readonly status: number | undefined; readonly text: string }>
}

function sendHalf({ url }: BulkUnderTest, account: string, ids: readonly string[]): HalfSent {
  const headers = { authorization: `Bearer ${account}`, 'transfer-encoding': 'chunked' }
  const sending = request(url + RUNS, { method: 'DELETE', headers })
  const answer = new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
    sending.on('error', reject)
    sending.on('response', async (response) => {
      let text = ''
      for await (const part of response) text += part
      resolve({ status: response.statusCode, text })
    })
  })
  answer.catch(() => undefined)
  sending.write(`{"workflowRunIds":["${ids.join('","')}"`)
  return { sending, answer }
}

describeOnEveryStore('a bulk cancel whose ids are still arriving', (openStore) => {
  let store: Store
  let service: BulkUnderTest
  let lookups = 0
  let isStoreOut = false
  beforeAll(async () => {
    store = await openStore()
    const watched: Store = {
      describe: () => store.describe(),
      close: () => store.close(),
      run: async (operation, args) => {
        if (operation.name !== 'bulk.selectSent') return store.run(operation, args)
        if (isStoreOut) throw new HomeportError('store_unavailable', {})
        const found = await store.run(operation, args)
        lookups++
        return found
      },
    }
    service = await startBulk(watched)
  })
  beforeEach(() => {
    lookups = 0
    isStoreOut = false
  })
  const untilLookedUp = () => waitFor(() => lookups > 0, { what: 'the first ids to be looked up' })

  it('looks them up already, and does not touch a run that is triggered meanwhile', async () => {
    const account = newAccount()
    const [early = ''] = await startRuns(store, account, 1)
    const { sending, answer } = sendHalf(service, account, [early, ...UNKNOWN])
    await untilLookedUp()
    const [late = ''] = await startRuns(store, account, 1)
    sending.end(`,"${late}"],"report":true}`)
    const { status, text } = await answer
    expect(status).toBe(200)
    const outcomes = { cancelled: 1, alreadyFinished: 0, notFound: UNKNOWN.length + 1, failed: 0 }
    expect(JSON.parse(text)).toMatchObject({ cancelled: 1, outcomes })
    expect(await statesOf(store, account, [early, late])).toEqual(['RUN_CANCELED', 'RUN_STARTED'])
  })

  it.each([
    ['breaks off', undefined],
    ['has a filter that is misspelt', '],"lable":"nightly"}'],
    ['is no JSON', ']]'],
  ])('has done nothing when the request %s at its end', async (_, end) => {
    const account = newAccount()
    const [id = ''] = await startRuns(store, account, 1)
    const { sending, answer } = sendHalf(service, account, [id, ...UNKNOWN])
    await untilLookedUp()
    if (end === undefined) sending.destroy()
    else sending.end(end)
    if (end === undefined) await expect(answer).rejects.toThrow()
    else expect((await answer).status).toBe(400)
    expect(await service.ask(account, 'GET', '/v2/workflows/bulkActions')).toMatchObject({ body: { bulkActions: [] } })
    expect(await statesOf(store, account, [id])).toEqual(['RUN_STARTED'])
  })

  it('is answered as soon as it is whole when the store has failed meanwhile', async () => {
    isStoreOut = true
    const { sending, answer } = sendHalf(service, newAccount(), UNKNOWN)
    sending.end(']}')
    expect((await answer).status).toBe(503)
  })
})
