import { beforeEach, describe, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { CREDENTIALS, RawClient, type Rig, startRig } from '../testing/rig.js'

/** Replies that wait until a standby has the data that they acknowledge or show. */

/** A pending question of the home to its standby whether it has the data. */
interface Question {
  readonly answer: () => void
  readonly refuse: () => void
}

let rig: Rig
/** Oldest first. */
let questions: Question[]
let mode: 'async' | 'replicated'

function confirm(): Promise<void> | undefined {
  if (mode === 'async') return undefined
  return new Promise((resolve, reject) => {
    const refuse = () => reject(new HomeportError('standby_silent', { seconds: 10 }))
    questions.push({ answer: resolve, refuse })
  })
}

beforeEach(async () => {
  questions = []
  mode = 'replicated'
  rig = await startRig({}, undefined, undefined, [], { home: { mayServe: () => true, confirm } })
})

async function asked(count: number): Promise<void> {
  await waitFor(() => questions.length >= count, { what: `${count} questions` })
}

/** A client that is logged in. The gateway answers a login itself, so it needs no confirmation. */
const client = (): Promise<RawClient> => new RawClient(rig.port).login()

describe('a reply', () => {
  it('goes out when it is confirmed, and in the order of the engine', async () => {
    const raw = await client()
    raw.send('SET a 1\r\n')
    await asked(1)
    raw.send('GET a\r\n')
    await asked(2)
    expect(raw.received).toBe('')
    questions[1]?.answer()
    // Meanwhile another client gets its answer. A reply that went out too early would have arrived before that.
    await client()
    expect(raw.received).toBe('')
    questions[0]?.answer()
    await raw.expect('+OK\r\n$1\r\n1\r\n')
  })

  it('waits behind an unconfirmed one, also if it needs no confirmation itself', async () => {
    const raw = await client()
    raw.send('INCR n\r\n')
    await asked(1)
    mode = 'async'
    raw.send('INCR n\r\n')
    raw.send('PING\r\n')
    questions[0]?.answer()
    await raw.expect(':1\r\n:2\r\n+PONG\r\n')
    await raw.send('INCR n\r\n').expect(':3\r\n')
    expect(questions).toHaveLength(1)
  })

  it('that cannot be confirmed becomes an error that says so, and the next one is asked about again', async () => {
    const raw = await client()
    raw.send('SET a 1\r\n')
    await asked(1)
    questions[0]?.refuse()
    await waitFor(() => raw.received.includes('\r\n'), { what: 'the error' })
    expect(raw.received).toMatch(/^-ERR A standby of this database has not confirmed the writes within 10 s/)
    raw.received = ''
    raw.send('GET a\r\n')
    await asked(2)
    questions[1]?.answer()
    await raw.expect('$1\r\n1\r\n')
  })

  it('over REST waits for its confirmation too', async () => {
    const answer = fetch(`${rig.restUrl}/set/a/1`, { headers: { authorization: `Bearer ${CREDENTIALS.token}` } })
    await asked(1)
    questions[0]?.answer()
    expect(await (await answer).json()).toEqual({ result: 'OK' })
  })

  it('of many megabytes is read from the engine up to 1 MB before it is confirmed', async () => {
    mode = 'async'
    const raw = await client()
    await raw.send('SETRANGE large 8388607 x\r\n').expect(':8388608\r\n')
    mode = 'replicated'
    raw.send('GET large\r\n')
    await waitFor(() => questions.length > 3, { what: 'the first part' })
    const most = 40
    expect(questions.length).toBeLessThan(most)
    mode = 'async'
    for (const { answer } of questions) answer()
    await waitFor(() => raw.received.length === 8_388_608 + '$8388608\r\n\r\n'.length, { what: 'all of it' })
    expect(questions.length).toBeLessThan(most)
  })
})
