import type { Caller } from '../../http/index.js'

/** Who acts when Homeport itself changes a database; the audit log of its owner tells of it. */
export function systemCaller(accountId: string): Caller {
  return { accountId, email: 'homeport', accountType: 'paid', source: 'SYSTEM', access: 'write', ip: '' }
}
