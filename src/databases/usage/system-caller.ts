import type { Caller } from '../../http/index.js'

/** The caller when Homeport itself changes a database; the audit log of its owner records it. */
export function systemCaller(accountId: string): Caller {
  return { accountId, email: 'homeport', accountType: 'paid', source: 'SYSTEM', access: 'write', ip: '' }
}
