import { expect, it } from 'vitest'
import { silentLogger } from '../telemetry/index.js'
import { Notifications, type NotificationsDeps } from './notifications.js'

it('an announcement whose handler fails holds up later ones of its module only, and is handled again', async () => {
  const notifications = new Notifications({ logger: silentLogger } as unknown as NotificationsDeps)
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
