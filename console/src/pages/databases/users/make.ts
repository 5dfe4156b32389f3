/** What is done to the users of a database, as the commands that do it. ACL is for `default`, whose token this is. */
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

/** The key of the users of a database in the cache. */
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

/** Makes a user that is not there yet. */
export async function createUser(plane: DataPlane, values: UserValues): Promise<AclSecrets> {
  const isTaken = (await readUsers(plane)).some(({ name }) => name === values.name)
  if (isTaken) throw new Error('There is a user with this name already. Choose another name.')
  return giveSecrets(askOf(plane), values.name, rulesOf(values))
}

/** Changes what a user may do; what opens the database for it stays. */
export async function changeUser(plane: DataPlane, values: UserValues): Promise<undefined> {
  await plane.send('ACL', 'SETUSER', values.name, ...rulesOf(values))
}

/** Takes all passwords of a user away and gives it a new one. */
export const renewSecrets = (plane: DataPlane, name: string): Promise<AclSecrets> =>
  giveSecrets(askOf(plane), name, ['resetpass'])

/** Deletes a user; its connections are closed. */
export async function deleteUser(plane: DataPlane, name: string): Promise<void> {
  await plane.send('ACL', 'DELUSER', name)
}
