import { group } from '../remote/remote.js'
import { copyCommand } from './copy.js'
import { upgradeStoreCommand } from './upgrade.js'

/** `homeport store`: the store of a stopped server. */
export const storeCommand = group('store', 'the store of a stopped server: copy it to another database, upgrade it', [
  copyCommand,
  upgradeStoreCommand,
])
