import { expect, it } from 'vitest'
import { HomeportError } from '../contract/errors/errors.js'
import { silentLogger } from '../telemetry/index.js'
import { recordedLog } from '../telemetry/testing/recorded-log.js'
import { Notifications, type NotificationsDeps } from './notifications.js'

it('an announcement whose handler fails holds up later ones of its module only, and is handled again', async () => {
  const notifications = new Notifications({ logger: silentLogger, nowMs: () => 0 } as unknown as NotificationsDeps)
  const handled: string[] = []
  let fails = true
  notifications.handle('bulk.fence', () => {
    if (fails) throw new Error('a defect')
    handled.push('fence')
  })
  notifications.handle('bulk.lift', () => void handled.push('lift'))
  notifications.handle('accounts', () => void handled.push('accounts'))
  notifications.begin(5)
  const topics = ['bulk.fence', 'bulk.lift', 'accounts']
  const announcements = topics.map((topic, at) => ({ version: 6 + at, sender: 1, topic, payload: '{}', at: 0 }))
  const look = () => notifications.handleAll(announcements)
  expect([await look(), await look(), notifications.seen, handled]).toEqual([false, false, 5, ['accounts']])
  fails = false
  expect([await look(), await look(), notifications.seen]).toEqual([true, false, 8])
  expect(handled).toEqual(['accounts', 'fence', 'lift'])
})

it('an announcement that can never be handled is set aside and named, once nobody waits for it', async () => {
  const log = recordedLog(['error'])
  let nowMs = 0
  const deps = { logger: log.logger, nowMs: () => nowMs }
  const notifications = new Notifications(deps as unknown as NotificationsDeps)
  let error: Error = new HomeportError('store_unavailable', {})
  notifications.handle('bulk.fence', () => {
    throw error
  })
  notifications.handle('bulk.lift', () => undefined)
  notifications.begin(5)
  const topics = ['bulk.of-later', 'bulk.fence', 'bulk.lift']
  const announcements = topics.map((topic, at) => ({ version: 6 + at, sender: 1, topic, payload: '{}', at: 0 }))
  const lookAt = async (ms: number) => {
    nowMs = ms
    await notifications.handleAll(announcements)
    return notifications.seen
  }
  expect([await lookAt(0), await lookAt(60_000)]).toEqual([6, 6])
  error = new Error('a defect')
  expect([await lookAt(60_001), await lookAt(75_001), await lookAt(75_002)]).toEqual([6, 6, 8])
  expect(log.lines.filter(({ event }) => event === 'cluster_announcement_set_aside')).toMatchObject([
    { fields: { topic: 'bulk.of-later', seq: 6 } },
    { fields: { topic: 'bulk.fence', seq: 7 } },
  ])
})

it('an announcement is handled once although two looks see it and the second one ends first', async () => {
  const notifications = new Notifications({ logger: silentLogger } as unknown as NotificationsDeps)
  const handled: string[] = []
  let goOn = () => {}
  notifications.handle('slow', async () => {
    handled.push('slow')
    await new Promise<void>((resolve) => {
      goOn = resolve
    })
  })
  const announcements = [{ version: 1, sender: 1, topic: 'slow', payload: '{}', at: 0 }]
  const first = notifications.handleAll(announcements)
  const second = notifications.handleAll(announcements)
  goOn()
  expect([await first, await second, handled, notifications.seen]).toEqual([true, false, ['slow'], 1])
})
