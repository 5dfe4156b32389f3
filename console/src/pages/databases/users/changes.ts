/** Changes to database users as ACL commands. They need the token of the user `default`. */
import {
  type AclSecrets,
  type AclUser,
  type AskAcl,
  giveSecrets,
} from '../../../../../src/contract/databases/acl-users.js'
import type { DataPlane } from '../../../api/data-plane.js'
import { queries } from '../../../api/session.js'
import { textOf } from '../../../lib/resp.js'
import { rulesOf, type UserValues, usersOf } from './acl.js'

/** The cache key of the users of a database. */
export const usersKey = ({ databaseId }: DataPlane): readonly unknown[] => ['data', databaseId, 'users']

/** Reads the users again. */
export const refreshUsers = (plane: DataPlane): Promise<void> =>
  queries.invalidateQueries({ queryKey: usersKey(plane) })

const askOf =
  (plane: DataPlane): AskAcl =>
  async (...words) =>
    textOf(await plane.send(...words))

/** All users of a database. */
export const readUsers = async (plane: DataPlane): Promise<AclUser[]> => usersOf(await plane.send('ACL', 'LIST'))

/** Creates a user. */
export async function createUser(plane: DataPlane, values: UserValues): Promise<AclSecrets> {
  const isTaken = (await readUsers(plane)).some(({ name }) => name === values.name)
  if (isTaken) throw new Error('A user with this name exists already. Choose another name.')
  return giveSecrets(askOf(plane), values.name, rulesOf(values))
}

/** Changes the rights of a user; its passwords stay. */
export async function changeUser(plane: DataPlane, values: UserValues): Promise<undefined> {
  await plane.send('ACL', 'SETUSER', values.name, ...rulesOf(values))
}

/** Replaces all passwords of a user with a new one. */
export const renewSecrets = (plane: DataPlane, name: string): Promise<AclSecrets> =>
  giveSecrets(askOf(plane), name, ['resetpass'])

/** Deletes a user; its connections are closed. */
export async function deleteUser(plane: DataPlane, name: string): Promise<void> {
  await plane.send('ACL', 'DELUSER', name)
}
