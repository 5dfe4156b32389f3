import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { newId } from '../../base/index.js'
import type { Store } from '../../store/index.js'
import { describeOnStore } from '../../store/testing/index.js'
import * as runsDone from './runs-done.js'
import * as runsFinish from './runs-finish.js'
import type { NewElement } from './runs-rows.js'
import type { Submission } from './runs-submissions.js'
import * as runsSubmit from './runs-submit.js'

const AT = 1_700_000_000_000
const columns = { url: 'https://x.test/w', host: 'x.test', path: '/w', labels: '', flow_key: null, caller_ip: '::1' }
const delivery = { ...columns, method: 'POST', headers: '{}', config: '{}', max_retries: 3 }
const element = (): NewElement => ({
  kind: 'step',
  messageId: newId('msg_', AT),
  body: new Uint8Array([1]),
  dueAt: AT,
  delivery,
  meta: JSON.stringify({ delivery }),
})
const start = (runId: string): Submission => ({
  kind: 'start',
  run: { run_id: runId, contact: 'known', ...columns },
  first: element(),
})
const append = (runId: string): Submission => ({ kind: 'append', runId, element: element() })

/** Records in which transaction a run got an element or ended, and a message was deleted. */
const RECORDER = `CREATE TABLE seen (tx bigint, what text, number bigint);
  CREATE FUNCTION record() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO seen VALUES (txid_current(), TG_ARGV[0], (to_jsonb(OLD) ->> 'seq')::bigint); RETURN NULL;
  END $$;
  CREATE TRIGGER record_step AFTER INSERT ON steps FOR EACH ROW EXECUTE FUNCTION record('appended');
  CREATE TRIGGER record_end AFTER UPDATE ON runs FOR EACH ROW WHEN (OLD.state <> NEW.state) EXECUTE FUNCTION record('ended');
  CREATE TRIGGER record_delete AFTER DELETE ON messages FOR EACH ROW EXECUTE FUNCTION record('deleted')`

describeOnStore('postgres', 'the message of a delivery that is over', (openStore, on) => {
  let store: Store
  let other: pg.Client
  beforeAll(async () => {
    const place = await on.newPlace()
    store = await openStore(place)
    other = new pg.Client({ connectionString: place.location })
    await other.connect()
    await other.query(RECORDER)
  })
  afterAll(() => other.end())

  const setUp = () => {
    const accountId = newId('acc_', AT)
    const send = (...submissions: Submission[]) => store.run(runsSubmit.submit, { accountId, submissions, at: AT })
    const begin = async (runId: string): Promise<number> => {
      const answer = await send(start(runId))
      return answer.kind === 'accepted' ? (answer.offers[0]?.seq ?? 0) : 0
    }
    const end = (seq: number) => store.run(runsDone.settleDone, { seq, retried: 0 })
    return { accountId, send, begin, end }
  }
  /** The other effects of the transaction that deleted a message; `undefined` if none deleted it. */
  const deletedWith = async (seq: number) => {
    const { rows } = await other.query(
      `SELECT s.what FROM seen d LEFT JOIN seen s ON s.tx = d.tx AND s.what <> 'deleted'
       WHERE d.what = 'deleted' AND d.number = $1`,
      [seq],
    )
    return rows.length === 0 ? undefined : rows.map(({ what }) => what)
  }

  it('is deleted in the transaction of the next step, of any run', async () => {
    const { begin, send, end } = setUp()
    const [first, second] = [await begin('a'), await begin('b')]
    await Promise.all([end(first), end(second), send(append('b'))])
    expect(await deletedWith(first)).toEqual(['appended'])
    expect(await deletedWith(second)).toEqual(['appended'])
  })

  it('is deleted with a start, with steps that share a transaction, or with the end of a run', async () => {
    const { accountId, begin, send, end } = setUp()
    const [first, second, third] = [await begin('a'), await begin('b'), await begin('c')]
    await Promise.all([end(first), send(start('d'))])
    expect(await deletedWith(first)).toEqual(['appended'])
    await Promise.all([end(second), send(append('a')), send(append('b'), append('b'))])
    expect(await deletedWith(second)).toContain('appended')
    await Promise.all([end(third), store.run(runsFinish.finishRun, { accountId, runId: 'c', response: '', at: AT })])
    expect(await deletedWith(third)).toEqual(['ended'])
  })

  it('is deleted although the next step is refused', async () => {
    const { begin, send, end } = setUp()
    const seq = await begin('a')
    const [answer] = await Promise.all([send(append('unknown')), end(seq)])
    expect(answer).toEqual({ kind: 'missing', runId: 'unknown' })
    expect(await deletedWith(seq)).toEqual([null])
  })

  it('keeps no step waiting while it is locked', async () => {
    const { begin, send, end } = setUp()
    const seq = await begin('a')
    await other.query('BEGIN')
    await other.query('SELECT 1 FROM messages WHERE seq = $1 FOR UPDATE', [seq])
    const ended = end(seq)
    expect(await send(append('a'))).toMatchObject({ kind: 'accepted' })
    await other.query('COMMIT')
    await ended
    expect(await deletedWith(seq)).toEqual([null])
  })

  it('stays if it has had another attempt meanwhile', async () => {
    const { begin, send, end } = setUp()
    const seq = await begin('a')
    await other.query('UPDATE messages SET retried = 1 WHERE seq = $1', [seq])
    await Promise.all([end(seq), send(append('a'))])
    expect(await deletedWith(seq)).toBeUndefined()
  })
})
