import { randomUUID } from 'node:crypto'
import type { ChannelRow } from '../transactions/alerts-channels.js'

/** A webhook that gets every alert. */
export const channelRow = (row: Pick<ChannelRow, 'account_id' | 'created_at'> & Partial<ChannelRow>): ChannelRow => ({
  channel_id: randomUUID(),
  name: 'ops',
  url: 'http://a.test/hook',
  format: 'json',
  enabled: 1,
  group_minutes: 5,
  send_resolved: 1,
  kinds: '[]',
  hourly_limit: 30,
  window_start: 0,
  window_sent: 0,
  held_back: 0,
  ...row,
})
