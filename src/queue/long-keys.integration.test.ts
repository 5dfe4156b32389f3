import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { describeOnStore } from '../store/testing/index.js'
import { setQueueScenes } from './testing/scene.js'

describeOnStore('postgres', 'deduplication ids of URL groups', (openStore) => {
  const scene = setQueueScenes(openStore)

  it('count for endpoints whose URLs are longer than what an index can hold', async () => {
    const url = `https://long.test/${randomBytes(4_000).toString('base64url')}`
    await scene.client.urlGroups.addEndpoints({ name: 'long', endpoints: [{ url }] })
    const publish = () => scene.client.publish({ urlGroup: 'long', deduplicationId: 'x', delay: '1h' })
    const [first] = await publish()
    expect(await publish()).toEqual([{ ...first, deduplicated: true }])
  })
})
