import { Alert, Button, PasswordInput, Stack, TextInput } from '@mantine/core'
import { type FormEvent, type ReactNode, useState } from 'react'
import { type ConsoleSession, createConsoleSession, type SignInBody } from '../../../../src/contract/console/session.js'
import { api } from '../../api/client.js'

/** The state of a sign-in. */
type Attempt =
  | { readonly state: 'none' }
  | { readonly state: 'incomplete'; readonly missing: Partial<SignInBody> }
  | { readonly state: 'sent' }
  | { readonly state: 'refused'; readonly reason: string }

/** E-mail, API key and the button. It calls back once the server has signed the user in. */
export function SignInForm({
  email = '',
  onSignedIn,
  children,
}: {
  /** The e-mail address of a user who only has to type the key. */
  email?: string
  onSignedIn: (session: ConsoleSession) => Promise<void>
  /** Above the fields. */
  children: ReactNode
}) {
  const [attempt, setAttempt] = useState<Attempt>({ state: 'none' })
  const missing = attempt.state === 'incomplete' ? attempt.missing : {}
  const signIn = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const body = credentialsOf(new FormData(event.currentTarget))
    const gaps = missingOf(body)
    if (Object.keys(gaps).length > 0) return setAttempt({ state: 'incomplete', missing: gaps })
    setAttempt({ state: 'sent' })
    try {
      await onSignedIn(await api(createConsoleSession, { body }))
    } catch (error) {
      setAttempt({ state: 'refused', reason: error instanceof Error ? error.message : String(error) })
    }
  }
  return (
    <form onSubmit={(event) => void signIn(event)} noValidate>
      <Stack gap="md">
        {children}
        <TextInput
          label="E-mail"
          name="email"
          type="email"
          autoComplete="username"
          autoFocus={email === ''}
          defaultValue={email}
          required
          withAsterisk={false}
          error={missing.email}
        />
        <PasswordInput
          label="API key"
          name="api_key"
          autoComplete="current-password"
          {...(email !== '' && { 'data-autofocus': true })}
          required
          withAsterisk={false}
          error={missing.api_key}
        />
        {attempt.state === 'refused' ? (
          <Alert color="red" role="alert">
            {attempt.reason}
          </Alert>
        ) : null}
        <Button type="submit" fullWidth loading={attempt.state === 'sent'}>
          Sign in
        </Button>
      </Stack>
    </form>
  )
}

const textOf = (value: FormDataEntryValue | null): string => (typeof value === 'string' ? value : '')

const credentialsOf = (form: FormData): SignInBody => ({
  email: textOf(form.get('email')),
  api_key: textOf(form.get('api_key')),
})

/** An instruction for each empty field. */
function missingOf({ email, api_key }: SignInBody): Partial<SignInBody> {
  return {
    ...(email.trim() === '' && { email: 'Enter the e-mail address of the account' }),
    ...(api_key.trim() === '' && { api_key: 'Enter an API key' }),
  }
}
