import { expect, it } from 'vitest'
import { partitionOfKey } from '../../cluster/index.js'
import { describeOnStore } from '../../store/testing/index.js'
import { raw } from '../../store/testing/inspect.js'
import { draftMessage } from '../publish/draft.js'
import { AS_ACCEPTED } from '../publish/settings.js'
import * as flowPartitions from './flow-partitions.js'
import * as messages from './messages.js'
import * as messagesDue from './messages-due.js'

const KEYS = ['a', 'b', 'c', 'd', 'e']
const draft = (key: string | undefined) =>
  draftMessage(
    { destination: 'http://127.0.0.1/', headers: key ? { 'upstash-flow-control-key': key } : {}, body: undefined },
    { accountId: 'acc', callerIp: null, now: 1, limits: AS_ACCEPTED, partition: key ? undefined : 7 },
  ).message

describeOnStore('postgres', 'messages of flow-control keys', (openStore, on) => {
  it('move from the partition of older versions to those of their keys', async () => {
    const place = await on.newPlace()
    const store = await openStore(place)
    await store.run(messages.insert, [...KEYS, undefined].map(draft))
    const of = async (partition: number) => {
      const range = { after: { nextAt: 0, seq: 0 }, until: { nextAt: 2, seq: 0 }, limit: 100, largestBody: 0 }
      const none = { exceptAccounts: [], exceptLanes: [] }
      const { rows } = await store.run(messagesDue.ofAll, { ...range, ...none, partitions: [partition] })
      return rows.map((row) => row.flow_key)
    }
    const found = () => Promise.all([...KEYS.map((key) => of(partitionOfKey('acc', key))), of(7)])
    const right = await found()
    expect(right).toEqual([...KEYS.map((key) => [key]), [null]])

    await raw(place).execute("UPDATE messages SET partition = 0 WHERE flow_key <> ''")
    expect(await of(0)).toEqual(KEYS)
    expect(await store.run(flowPartitions.moveToKeys, { after: flowPartitions.FIRST })).toBeUndefined()
    expect(await found()).toEqual(right)
  })
})
