import type { NewMessage } from '../transactions/messages.js'

/** A message that is due when it was created. */
export const messageRow = (
  row: Pick<NewMessage, 'message_id' | 'account_id' | 'created_at'> & Partial<NewMessage>,
): NewMessage => ({
  kind: 'http',
  group_key: null,
  url: 'http://x.test/a',
  method: 'POST',
  headers: '{}',
  body: null,
  config: '{}',
  max_retries: 0,
  next_at: row.created_at,
  labels: '',
  flow_key: null,
  caller_ip: null,
  host: 'x.test',
  path: '/a',
  ...row,
})
