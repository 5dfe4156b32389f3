import { expect, it } from 'vitest'
import { filterInfo } from './info-filter.js'

it('INFO tells nothing of the sockets that an engine listens on, nor where its replicas are', () => {
  const text = [
    '# Server',
    'redis_version:7.2.4',
    'server_name:valkey',
    'valkey_version:9.1.2',
    'listener0:name=tcp,bind=127.0.0.1,port=4711',
    'listener1:name=unix,bind=/srv/homeport/run/x.sock',
    'slave0:ip=eu-west-1,port=0,state=online',
    'connected_slaves:1',
  ]
  const shown = ['# Server', 'redis_version:7.2.4', 'server_name:valkey', 'valkey_version:9.1.2', 'connected_slaves:1']
  expect(filterInfo(text.join('\r\n'))).toBe(shown.join('\r\n'))
})
