import type { AclSecrets } from '../../../../../src/contract/databases/acl-users.js'
import type { DatabaseRecord } from '../../../../../src/contract/databases/databases.js'
import { NamedCode } from '../../../components/copy.js'
import { ShownOnce } from '../../../components/shown-once.js'

/** The credentials of a user, and how to connect with them. */
export function NewSecrets({
  database: { endpoint, port, tls },
  made,
  onClose,
}: {
  database: DatabaseRecord
  made: AclSecrets | undefined
  onClose: () => void
}) {
  const { name, password, restToken } = made ?? { name: '', password: '', restToken: '' }
  const scheme = tls ? 'rediss' : 'redis'
  return (
    <ShownOnce
      title={`Password of ${name}`}
      secrets={[
        { label: 'Password', value: password },
        { label: 'REST token', value: restToken },
      ]}
      isOpen={made !== undefined}
      onClose={onClose}
    >
      <NamedCode
        code={`redis-cli${tls ? ' --tls --cacert homeport-ca.crt' : ''} -u "${scheme}://${name}:${password}@${endpoint}:${port}"`}
        label={`Connect as ${name}`}
        secrets={[password]}
      />
    </ShownOnce>
  )
}
