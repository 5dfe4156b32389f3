import { Select, Switch, Textarea, TextInput } from '@mantine/core'
import { type UseFormReturnType, useForm } from '@mantine/form'
import type { AclSecrets, AclUser } from '../../../../../src/contract/databases/acl-users.js'
import type { DataPlane } from '../../../api/data-plane.js'
import { useTask } from '../../../api/hooks.js'
import { NamedCode } from '../../../components/copy.js'
import { FormDialog } from '../../../components/form-dialog.js'
import { NEW_USER, PRESET_NAMES, PRESETS, rulesOf, USER_RULES, type UserValues, valuesOf } from './acl.js'
import { changeUser, createUser, refreshUsers } from './changes.js'

/** The user that the dialog creates or changes. */
export type Editing = { readonly kind: 'new' } | { readonly kind: 'change'; readonly user: AclUser }

interface UserFormProps {
  readonly plane: DataPlane
  readonly editing: Editing
  readonly onClose: () => void
  readonly onMade: (made: AclSecrets) => void
}

/** Creates a user, or changes its rights. */
export function UserForm({ plane, editing, onClose, onMade }: UserFormProps) {
  const isNew = editing.kind === 'new'
  const form = useForm<UserValues>({
    initialValues: editing.kind === 'new' ? NEW_USER : valuesOf(editing.user),
    validateInputOnChange: true,
    validate: isNew ? USER_RULES : { commands: USER_RULES.commands },
  })
  const save = useTask(
    (values: UserValues): Promise<AclSecrets | undefined> =>
      isNew ? createUser(plane, values) : changeUser(plane, values),
    {
      errors: 'inline',
      onDone: (made) => {
        onClose()
        if (made !== undefined) onMade(made)
        void refreshUsers(plane)
      },
    },
  )
  return (
    <FormDialog
      opened
      onClose={onClose}
      size="lg"
      title={isNew ? 'Create a user' : `Change the rights of ${form.values.name}`}
      task={save}
      action={isNew ? 'Create the user' : 'Change the rights'}
      onSubmit={form.onSubmit((values) => save.mutate(values))}
    >
      {isNew ? <TextInput label="Name" placeholder="reporting" data-autofocus {...form.getInputProps('name')} /> : null}
      <Rights form={form} />
      <Switch
        label="Enabled: can log in"
        description="Disabling a user does not close its connections"
        {...form.getInputProps('isOn', { type: 'checkbox' })}
      />
      <NamedCode
        label="ACL command"
        code={`ACL SETUSER ${form.values.name || 'name'} ${rulesOf(form.values).join(' ')}`}
      />
    </FormDialog>
  )
}

function Rights({ form }: { form: Pick<UseFormReturnType<UserValues>, 'values' | 'getInputProps'> }) {
  return (
    <>
      <Select
        label="Commands"
        data={PRESET_NAMES.map((value) => ({ value, label: PRESETS[value].title }))}
        {...form.getInputProps('preset')}
      />
      {form.values.preset === 'own' ? (
        <TextInput
          label="Command rules"
          description="Separated by spaces: +get -keys +@hash. Empty: none"
          placeholder="+@read -keys"
          {...form.getInputProps('commands')}
        />
      ) : null}
      <Textarea
        label="Keys"
        description="Patterns, one per line, such as news:* or %R~news:* (read only). Empty: none"
        autosize
        minRows={2}
        maxRows={8}
        {...form.getInputProps('keys')}
      />
      <Textarea
        label="Channels"
        description="Patterns of channels to publish and subscribe to, one per line. Empty: none"
        autosize
        minRows={1}
        maxRows={8}
        {...form.getInputProps('channels')}
      />
    </>
  )
}
